//! Scatter lists for transforms that take flat requests: gather, run, distribute.

use zeroize::Zeroizing;

use crate::request::{Request, Status};

/// Runs `requests` as flat copies, and brings output and status back.
///
/// The copies hold plaintext and are wiped, also where `run` panics. They cost one pass over the memory each way,
/// and as much memory as the batch has payload.
pub(crate) fn flattened(requests: &mut [Request<'_>], run: impl FnOnce(&mut [Request<'_>])) {
    let mut copies: Vec<Zeroizing<Vec<u8>>> = requests
        .iter()
        .map(|request| {
            let mut copy = Zeroizing::new(vec![0; request.len()]);
            request.gather(&mut copy);
            copy
        })
        .collect();
    let mut flat: Vec<Request<'_>> = requests
        .iter()
        .zip(&mut copies)
        // SAFETY: `requests` is not used until `flat` is gone, below.
        .map(|(request, copy)| unsafe { request.flattened(copy) })
        .collect();
    run(&mut flat);
    let statuses: Vec<Status> = flat.iter().map(Request::status).collect();
    drop(flat);
    for ((request, copy), status) in requests.iter_mut().zip(&mut copies).zip(statuses) {
        request.set_status(status);
        match status {
            Status::Done if request.has_output() => request.distribute(copy),
            Status::Done => {}
            _ => request.wipe_output(),
        }
    }
}
