//! Which authorities TLS trusts, and which of its errors no further attempt can mend.

use crate::error::DataError;
use rustls::AlertDescription;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use std::{env, error::Error, fs, io};

/// The certificates of the file that `SSL_CERT_FILE` names. `None` stands for Mozilla's list.
pub(super) fn roots() -> Result<Option<Vec<CertificateDer<'static>>>, DataError> {
    let Some(path) = env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty()) else { return Ok(None) };
    let unusable = |source| DataError::Open { path: path.clone().into(), source };
    let wrong = |problem: String| unusable(io::Error::new(io::ErrorKind::InvalidData, problem));
    let pem = fs::read(&path).map_err(unusable)?;
    let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let roots = roots.map_err(|error| wrong(error.to_string()))?;
    if roots.is_empty() {
        return Err(wrong("`SSL_CERT_FILE` names it, and it has no certificate".into()));
    }
    Ok(Some(roots))
}

/// Whether an error, or one inside it, is about a certificate: that of the server, or ours, since we have none. It does not pass.
pub(super) fn is_of_certificate(error: &(dyn Error + 'static)) -> bool {
    let mut inner = Some(error);
    while let Some(error) = inner {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            use AlertDescription::{BadCertificate, CertificateRequired};
            return match error {
                rustls::Error::InvalidCertificate(_) => true,
                rustls::Error::AlertReceived(alert) => [BadCertificate, CertificateRequired].contains(alert),
                _ => false,
            };
        }
        // The source of this one is that of its inner error.
        let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inner = within.map(|within| within as _).or_else(|| error.source());
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::CertificateError;

    #[test]
    fn only_errors_of_certificates_stay() {
        let alert = |alert| rustls::Error::AlertReceived(alert);
        for (error, stays) in [
            (rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer), true),
            (alert(AlertDescription::CertificateRequired), true),
            (alert(AlertDescription::InternalError), false),
            (rustls::Error::DecryptError, false),
        ] {
            let inside = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error.clone()));
            assert_eq!((is_of_certificate(&error), is_of_certificate(&inside)), (stays, stays), "{error}");
        }
        assert!(!is_of_certificate(&io::Error::from(io::ErrorKind::InvalidData)));
    }
}
