//! Where an object is: `s3://bucket/key`, `gs://bucket/key`, `az://container/key`.

use super::service::{Connector, cause};
use crate::error::DataError;
use object_store::{
    ObjectStore, RetryConfig, aws::AmazonS3Builder, azure::MicrosoftAzureBuilder, gcp::GoogleCloudStorageBuilder,
    list::PaginatedListStore, path::Path,
};
use std::{fmt, sync::Arc};

/// A bucket of objects, which can be listed page by page.
pub(super) trait Bucket: ObjectStore + PaginatedListStore {}

impl<S: ObjectStore + PaginatedListStore> Bucket for S {}

/// An object, or a pattern of objects, in a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CloudUrl {
    /// `s3`, `gs` or `az`.
    pub(super) scheme: String,
    /// The bucket, which Azure calls a container.
    pub(super) bucket: String,
    pub(super) key: Path,
}

impl CloudUrl {
    pub(super) fn parse(url: &str) -> Result<Self, DataError> {
        let (name, rest) = url.split_once("://").unwrap_or_default();
        // The error does not show an invalid bucket name, because the text may be a password.
        let wrong = |problem: String| {
            DataError::option(
                "paths",
                format!("a path that begins with `{name}://` {problem}"),
                "write `s3://bucket/folder/name`, and put credentials into the environment",
            )
        };
        if !["s3", "gs", "az"].contains(&name) {
            return Err(wrong("is of no cloud".into()));
        }
        let (bucket, key) = rest.split_once('/').ok_or_else(|| wrong("names no object".into()))?;
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.$".contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(is_known) {
            return Err(wrong("names no bucket".into()));
        }
        let parsed = Path::parse(key).ok().filter(|parsed| parsed.as_ref() == key && !key.is_empty());
        let key = parsed.ok_or_else(|| wrong(format!("names no object: `{key}`")))?;
        Ok(Self { scheme: name.into(), bucket: bucket.into(), key })
    }

    /// The URL of another object of the bucket.
    pub(super) fn url(&self, key: &str) -> String {
        format!("{}://{}/{key}", self.scheme, self.bucket)
    }

    /// The bucket, with the settings of the environment.
    pub(super) fn store(&self, connector: &Connector) -> Result<Arc<dyn Bucket>, DataError> {
        let bucket = self.bucket.as_str();
        let connector = connector.clone();
        let store: object_store::Result<Arc<dyn Bucket>> = match self.scheme.as_str() {
            "s3" => {
                s3(bucket).with_http_connector(connector).with_retry(once()).build().map(|store| Arc::new(store) as _)
            }
            "gs" => google(bucket)
                .with_http_connector(connector)
                .with_retry(once())
                .build()
                .map(|store| Arc::new(store) as _),
            _ => azure(bucket)
                .with_http_connector(connector)
                .with_retry(once())
                .build()
                .map(|store| Arc::new(store) as _),
        };
        store.map_err(|error| self.unusable(&error))
    }

    /// The error of invalid settings. Settings may be secrets, and errors of parsers show the parsed text. So only errors without an inner
    /// error are shown.
    pub(super) fn unusable(&self, error: &object_store::Error) -> DataError {
        let prefix = match self.scheme.as_str() {
            "s3" => "AWS_",
            "gs" => "GOOGLE_",
            _ => "AZURE_",
        };
        let told = match error {
            object_store::Error::Generic { source, .. } if source.source().is_none() => cause(error).to_string(),
            _ => "one of them makes no sense".into(),
        };
        DataError::option(
            "paths",
            format!("{self} cannot be opened with the variables `{prefix}..` of the environment: {told}"),
            "see the table in docs/stores.md of burn-shards",
        )
    }
}

/// Every request is made once, because `SteadyStore` decides which ones are retried.
pub(super) fn once() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

pub(super) fn s3(bucket: &str) -> AmazonS3Builder {
    AmazonS3Builder::from_env().with_bucket_name(bucket)
}

pub(super) fn google(bucket: &str) -> GoogleCloudStorageBuilder {
    GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket)
}

pub(super) fn azure(container: &str) -> MicrosoftAzureBuilder {
    MicrosoftAzureBuilder::from_env().with_container_name(container)
}

/// The URL, as [`CloudUrl::parse`] takes it.
impl fmt::Display for CloudUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url(self.key.as_ref()))
    }
}
