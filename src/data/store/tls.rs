//! Which authorities TLS trusts.

use crate::data::error::DataError;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use std::{env, fs, io};

/// The certificates of the file that `SSL_CERT_FILE` names. `None` stands for Mozilla's list.
pub(super) fn named() -> Result<Option<Vec<CertificateDer<'static>>>, DataError> {
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
