//! The calls of a device, by name, so that a test can make one of them hang.

#[cfg(test)]
use parking_lot::{Condvar, Mutex};
#[cfg(test)]
use std::sync::Arc;

/// What a loader asks of its device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DeviceCall {
    Open,
    Decode,
    Upload,
    Flush,
    Close,
}

/// Makes a fake device hang.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Hang {
    at: Mutex<Option<DeviceCall>>,
    changed: Condvar,
}

#[cfg(test)]
impl Hang {
    pub(crate) fn at(call: DeviceCall) -> Arc<Self> {
        Arc::new(Self { at: Mutex::new(Some(call)), ..Self::default() })
    }

    pub(crate) fn end(&self) {
        *self.at.lock() = None;
        self.changed.notify_all();
    }

    pub(super) fn reached(&self, call: DeviceCall) {
        self.changed.wait_while(&mut self.at.lock(), |at| *at == Some(call));
    }
}
