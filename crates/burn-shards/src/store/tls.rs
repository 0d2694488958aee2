//! Which authorities TLS trusts, and which of its errors are not worth a retry.

use crate::error::DataError;
use rustls::AlertDescription;
use rustls_pki_types::CertificateDer;
use std::{env, error::Error, io};

/// The certificates of the authorities that are trusted: those of the system and of Mozilla's list, or only those that
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
pub(super) fn roots() -> Result<Vec<CertificateDer<'static>>, DataError> {
    let found = rustls_native_certs::load_native_certs();
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().filter_map(|name| Some((name, env::var_os(name)?)));
    let (empty, named): (Vec<_>, Vec<_>) = named.partition(|(_, path)| path.is_empty());
    for (name, _) in empty {
        log::warn!("`{name}` is set to nothing, so the authorities of the system are not read: unset it");
    }
    found.errors.iter().for_each(|error| log::debug!("a certificate is not read: {error}"));
    let Some((name, path)) = named.first() else {
        let mozilla = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned();
        return Ok(found.certs.into_iter().chain(mozilla).collect());
    };
    let wrong = |problem: String| DataError::Open {
        path: path.into(),
        source: io::Error::new(io::ErrorKind::InvalidData, format!("`{name}` names it, and {problem}")),
    };
    // As in OpenSSL, a certificate that cannot be read is skipped if there are others.
    match (found.errors.first(), found.certs.is_empty()) {
        (_, false) => Ok(found.certs),
        (Some(error), true) => Err(wrong(format!("it cannot be read: {error}"))),
        (None, true) => Err(wrong("it has no certificate".into())),
    }
}

/// Whether an error, or one inside it, is about a certificate: the server's, or a client certificate, which we do not have. Such a request
/// would fail again.
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
        // `source()` of an [`io::Error`] skips the inner error and returns the inner error's source.
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
