//! Events of CUDA, and the one behind all transfers to other GPUs.
#![expect(unsafe_code)]

use super::context::{InContext, Server};
use crate::fault::BoxError;
use burn::tensor::StreamId;
use cubecl_runtime::server::{ServerCommunication as _, ServerUtilities};
use cubecl_server::stream::WriteScoped;
use cudarc::driver::{
    CudaContext, DriverError, result,
    sys::{self, CUevent, CUevent_flags, CUevent_wait_flags, CUresult, CUstream},
};
use std::sync::Arc;

/// The CubeCL stream that waits for transfers to other GPUs, so that no training loop has to. CubeCL maps thread
/// numbers, from 0, to its pool of 128 streams. This stream has the last place in the pool. A thread that maps to the
/// same place also waits for transfers.
const TRANSFERS: StreamId = StreamId { value: u64::MAX };

/// A CUDA event without timing.
pub(in crate::device) struct CudaEvent {
    event: CUevent,
    context: Arc<CudaContext>,
}

// SAFETY: an event of CUDA may be used from any thread.
unsafe impl Send for CudaEvent {}
// SAFETY: as above.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    /// Makes an event. The calling thread is in the context.
    pub(in crate::device) fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let event = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
        Ok(Self { event, context: Arc::clone(context) })
    }

    /// Makes an event after all transfers to other GPUs that are queued in CubeCL so far. CubeCL queues them on its own
    /// stream, and does not keep their source memory alive. Runs on the server's thread, which is in the context, while
    /// no graph is recorded on the device: the wait for that stream would become part of the graph.
    pub(in crate::device) fn behind_transfers(
        server: &mut Server,
        context: &Arc<CudaContext>,
    ) -> Result<Self, BoxError> {
        server.sync_collective(TRANSFERS)?;
        let stream = server.write_streams().try_stream_mut(&TRANSFERS).ok_or("a stream of CubeCL has gone")?.sys;
        let event = Self::new(context)?;
        // SAFETY: CubeCL keeps its streams for as long as its server.
        unsafe { event.record(stream) }?;
        Ok(event)
    }

    /// Records the event after the work queued on a stream.
    ///
    /// # Safety
    /// The stream lives.
    pub(in crate::device) unsafe fn record(&self, stream: CUstream) -> Result<(), DriverError> {
        // SAFETY: the event is this one's, and live. The caller vouches for the stream.
        unsafe { result::event::record(self.event, stream) }
    }

    /// Makes a stream wait for the event. The event may be recorded again, or dropped, at once: the wait is for its
    /// current recording.
    ///
    /// # Safety
    /// The stream lives.
    pub(in crate::device) unsafe fn hold_up(&self, stream: CUstream) -> Result<(), DriverError> {
        // SAFETY: as above.
        unsafe { result::stream::wait_event(stream, self.event, CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
    }

    /// Whether the event is reached. The calling thread is in the context.
    pub(in crate::device) fn is_reached(&self) -> Result<bool, DriverError> {
        // SAFETY: the event is this one's, and live.
        match unsafe { sys::cuEventQuery(self.event) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => result.result().map(|()| true),
        }
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and destroyed only here. The driver frees it once its work is done.
        let destroy = |_in_context| unsafe { result::event::destroy(self.event) };
        if let Err(error) = InContext::new(&self.context).and_then(destroy) {
            log::debug!("burn-pinned: an error at the end of an event: {error}");
        }
    }
}

/// Whether CubeCL may copy a tensor from the device to another GPU without the host.
pub(in crate::device) fn has_peers(utilities: &ServerUtilities) -> bool {
    utilities.server_comm_enabled && result::device::get_count().is_ok_and(|devices| devices > 1)
}
