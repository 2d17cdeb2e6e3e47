//! Host functions of streams: the program's own functions, run when the work before them is done.
//!
//! They run on a thread of their own, in the order in which they were given, so that one may wait for something that
//! the program does after it gave it. Whatever comes later in any stream of the context waits for them.

use std::sync::{Arc, Condvar, Mutex, mpsc};

use super::{abi::IN_HOST_FUNCTION, state::lock};

type Task = Box<dyn FnOnce() + Send>;

/// The host functions of a context.
#[derive(Default)]
pub(crate) struct HostFunctions {
    sender: Mutex<Option<mpsc::Sender<Task>>>,
    pending: Arc<(Mutex<usize>, Condvar)>,
}

impl HostFunctions {
    /// Runs a function after those that were given before.
    pub(crate) fn run(&self, task: impl FnOnce() + Send + 'static) {
        *lock(&self.pending.0) += 1;
        let pending = Arc::clone(&self.pending);
        let task: Task = Box::new(move || {
            task();
            *lock(&pending.0) -= 1;
            pending.1.notify_all();
        });
        let mut sender = lock(&self.sender);
        let sender = sender.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::channel::<Task>();
            std::thread::spawn(move || {
                IN_HOST_FUNCTION.set(true);
                receiver.iter().for_each(|task| task());
            });
            sender
        });
        if let Err(mpsc::SendError(task)) = sender.send(task) {
            // The thread ended with a function that panicked; this one runs here.
            task();
        }
    }

    /// Waits until all have run.
    pub(crate) fn wait(&self) {
        let mut pending = lock(&self.pending.0);
        while *pending > 0 {
            pending = self.pending.1.wait(pending).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Some have still to run.
    pub(crate) fn are_pending(&self) -> bool {
        *lock(&self.pending.0) > 0
    }
}
