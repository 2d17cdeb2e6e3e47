//! Queues: what streams have still to do, and the threads that do it.
//!
//! A stream's work is a queue of jobs, done one after the other. A job may have to wait for points in other queues:
//! events, the default stream, the launch of the same graph before. Whoever gives a job gets its [`Point`], and can ask
//! whether it is done or wait for it.
//!
//! A queue whose first job can run is *ready*. Threads of the driver take ready queues and do their jobs until a queue
//! is empty or has to wait; there are as many of them as queues have been busy at once. A thread of the program that
//! waits for a queue which no other thread has taken does its jobs itself, and a job that is over at once, given to a
//! stream with nothing to do, is done by the thread that gives it: neither costs a change of threads. So that a program
//! which gives and waits in turns is not disturbed, a ready queue that is alone has to wait for a moment: one of the idle
//! threads, the *watcher*, looks at short intervals whether there is one, for as long as the program is busy.
//!
//! Everything here is under one lock, the board's. It is the last one that a thread takes: nobody takes another lock
//! while holding it, and it is never held while a job runs or while anybody waits. A thread that waits for a point holds
//! no lock at all, but for that of a primary context which is about to go and has nothing to do any more.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use super::{abi::IN_HOST_FUNCTION, state::lock};

/// The queue of a stream, and which others it waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lane {
    /// The stream's number.
    pub(crate) id: u64,
    /// Its context's number.
    pub(crate) context: u64,
    /// It is the default stream that all threads share.
    pub(crate) legacy: bool,
    /// It waits for the legacy default stream, and that for it.
    pub(crate) blocking: bool,
}

/// A place in a queue: behind one of its jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    lane: u64,
    number: u64,
}

/// Something to do.
pub(crate) struct Job {
    /// What has to be done before, beside what the stream was given before.
    pub(crate) after: Vec<Point>,
    pace: Pace,
    run: Box<dyn FnOnce() + Send>,
}

/// Who may do a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// It is over at once: also the thread that gives it.
    Quick,
    /// It may take any time: a thread of the driver, or one that waits for it.
    Long,
    /// It calls the program, which must not happen in the middle of a call of the program's: a thread of the driver.
    Program,
}

impl Job {
    /// A job.
    pub(crate) fn new(pace: Pace, run: impl FnOnce() + Send + 'static) -> Job {
        Job { after: Vec::new(), pace, run: Box::new(run) }
    }

    /// Has it wait for these too.
    pub(crate) fn after(mut self, points: impl IntoIterator<Item = Point>) -> Job {
        self.after.extend(points);
        self
    }
}

impl Point {
    /// The place behind the job that was given so many jobs later, in one call.
    pub(crate) fn later(self, jobs: usize) -> Point {
        Point { number: self.number + jobs as u64, ..self }
    }

    /// The job, and all before it, is done.
    pub(crate) fn is_done(self) -> bool {
        let board = board();
        board.hurry(self);
        board.is_done(self)
    }
}

/// Bytes that are copied or filled in about the time that it takes to have another thread do it.
pub(crate) const QUICK_BYTES: u64 = 64 << 10;
/// Threads of the driver at most: as many as grids that a GPU runs at once.
const MOST_THREADS: usize = 128;

/// How long the watcher looks away, and how often it looks before it goes to sleep.
const INTERVAL: Duration = Duration::from_micros(30);
const LOOKS: u32 = 200;

/// Every queue that has something to do.
#[derive(Default)]
struct Board {
    queues: HashMap<u64, Queue>,
    /// Queues whose first job can run, and that nobody has taken.
    ready: VecDeque<u64>,
    /// Jobs given so far, in all queues: they are numbered in this order.
    given: u64,
    /// Threads of the driver, and those of them that have nothing to do.
    threads: usize,
    idle: usize,
    /// One of the idle threads looks at short intervals.
    is_watched: bool,
}

struct Queue {
    lane: Lane,
    jobs: VecDeque<(u64, Job)>,
    /// The job given last.
    newest: u64,
    /// The job that somebody does.
    running: Option<u64>,
    /// It is in the list of those that are.
    ready: bool,
    /// Queues that wait for a job here.
    waiting: Vec<(u64, u64)>,
    /// Jobs that threads of the program wait for.
    awaited: Vec<u64>,
}

impl Queue {
    /// The first job that is not done.
    fn oldest(&self) -> Option<u64> {
        self.running.or_else(|| self.jobs.front().map(|(number, _)| *number))
    }

    /// The place behind everything.
    fn end(&self) -> Point {
        Point { lane: self.lane.id, number: self.newest }
    }
}

static BOARD: LazyLock<Mutex<Board>> = LazyLock::new(Mutex::default);
/// A queue has become ready.
static READY: Condvar = Condvar::new();
/// A job that somebody waits for is done.
static DONE: Condvar = Condvar::new();

/// Gives jobs to a queue, and answers the point of the first.
pub(crate) fn give(lane: Lane, jobs: Vec<Job>) -> Point {
    let mut board = board();
    let first = Point { lane: lane.id, number: board.given + 1 };
    let mut before = board.implied(lane);
    let is_new = !board.queues.contains_key(&lane.id);
    let alone = jobs.len() == 1;
    for mut job in jobs {
        job.after.append(&mut before);
        board.given += 1;
        let number = board.given;
        let queue = board.queues.entry(lane.id).or_insert_with(|| Queue {
            lane,
            jobs: VecDeque::new(),
            newest: number,
            running: None,
            ready: false,
            waiting: Vec::new(),
            awaited: Vec::new(),
        });
        queue.newest = number;
        queue.jobs.push_back((number, job));
    }
    if is_new {
        let quick = board.queues.get(&lane.id).is_some_and(|queue| queue.jobs[0].1.pace == Pace::Quick);
        if alone && quick {
            drop(serve(board, lane.id, first.number, false));
        } else {
            board.arm(lane.id);
        }
    }
    first
}

/// Waits until a queue has room for more, as a GPU's does: a program may give work faster than it is done.
pub(crate) fn make_room(lane: Lane) {
    const MOST_JOBS: usize = 1 << 16;
    let board = board();
    let jobs = board.queues.get(&lane.id).map(|queue| &queue.jobs);
    let surplus = jobs.and_then(|jobs| jobs.get(jobs.len().checked_sub(MOST_JOBS)?));
    let point = surplus.map(|(number, _)| Point { lane: lane.id, number: *number });
    drop(board);
    wait(point.as_slice());
}

/// Waits until all of these are done.
pub(crate) fn wait(points: &[Point]) {
    let mut board = board();
    // Without threads of the driver, which the system may have refused, somebody has to do everything.
    let mut anything = board.threads == 0;
    for &point in points {
        while let Some(queue) = board.queues.get_mut(&point.lane)
            && queue.oldest().is_some_and(|oldest| oldest <= point.number)
        {
            if queue.ready && (anything || queue.jobs[0].1.pace != Pace::Program) {
                queue.ready = false;
                board.ready.retain(|&other| other != point.lane);
                board = serve(board, point.lane, point.number, anything);
            } else {
                queue.awaited.push(point.number);
                board.hurry(point);
                board = DONE.wait(board).unwrap_or_else(PoisonError::into_inner);
                anything = board.threads == 0;
            }
        }
    }
}

/// What a stream has still to do. The legacy default stream is done when those are that it waits for.
pub(crate) fn of_stream(lane: Lane) -> Vec<Point> {
    let board = board();
    let own = board.queues.get(&lane.id).map(Queue::end);
    let others = if lane.legacy { board.implied(lane) } else { Vec::new() };
    own.into_iter().chain(others).inspect(|&point| board.hurry(point)).collect()
}

/// What the streams of a context have still to do.
pub(crate) fn of_context(context: u64) -> Vec<Point> {
    board().queues.values().filter(|queue| queue.lane.context == context).map(Queue::end).collect()
}

impl Board {
    fn is_done(&self, point: Point) -> bool {
        let queue = self.queues.get(&point.lane);
        queue.and_then(Queue::oldest).is_none_or(|oldest| oldest > point.number)
    }

    /// What a queue's next job waits for by the rules of default streams.
    fn implied(&self, lane: Lane) -> Vec<Point> {
        let waits = |other: &Lane| lane.legacy && other.blocking || lane.blocking && other.legacy;
        let others = self.queues.values().filter(|queue| {
            queue.lane.context == lane.context && queue.lane.id != lane.id && waits(&queue.lane)
        });
        others.map(Queue::end).collect()
    }

    /// Puts a queue that nobody has taken where its first job says: with those that are ready, or with those that wait.
    fn arm(&mut self, id: u64) {
        let Some(queue) = self.queues.get(&id) else { return };
        let Some((_, first)) = queue.jobs.front() else { return };
        if queue.running.is_some() || queue.ready {
            return;
        }
        if let Some(&point) = first.after.iter().find(|&&point| !self.is_done(point)) {
            if let Some(other) = self.queues.get_mut(&point.lane) {
                other.waiting.push((point.number, id));
            }
            return;
        }
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.ready = true;
            self.ready.push_back(id);
            self.call_thread();
        }
    }

    /// Sees to it that somebody takes the queue that became ready last.
    fn call_thread(&mut self) {
        if self.is_watched && self.ready.len() == 1 {
            return;
        }
        if self.ready.len() <= self.idle || self.threads == MOST_THREADS {
            READY.notify_one();
            return;
        }
        // A thread is idle from its start on. It is never joined: a program may end while it works.
        if thread::Builder::new().name("emulated GPU".into()).spawn(work).is_ok() {
            self.threads += 1;
            self.idle += 1;
        }
    }

    /// Somebody wants to know of a point: a queue that waits for the watcher need not wait longer.
    fn hurry(&self, point: Point) {
        if self.queues.get(&point.lane).is_some_and(|queue| queue.ready) {
            READY.notify_one();
        }
    }

    /// Takes the next job of a queue, if it is one that the caller may do now.
    fn take(&mut self, id: u64, last: u64, anything: bool) -> Option<(u64, Job)> {
        let queue = self.queues.get(&id)?;
        let (number, job) = queue.jobs.front()?;
        let may = anything || job.pace != Pace::Program;
        if !may || *number > last || !job.after.iter().all(|&point| self.is_done(point)) {
            return None;
        }
        let queue = self.queues.get_mut(&id)?;
        let job = queue.jobs.pop_front();
        queue.running = job.as_ref().map(|(number, _)| *number);
        job
    }

    /// Notes that a job is done, and moves whoever waited for it.
    fn finish(&mut self, id: u64, number: u64) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        queue.running = None;
        let is_awaited = queue.awaited.iter().any(|&awaited| awaited <= number);
        queue.awaited.retain(|&awaited| awaited > number);
        let moved: Vec<u64> =
            queue.waiting.extract_if(.., |(awaited, _)| *awaited <= number).map(|(_, id)| id).collect();
        if queue.jobs.is_empty() {
            self.queues.remove(&id);
        }
        if is_awaited {
            DONE.notify_all();
        }
        moved.into_iter().for_each(|id| self.arm(id));
    }
}

/// Does jobs of a queue that the caller has taken, up to one of them, as long as they need not wait.
fn serve(
    mut board: MutexGuard<'static, Board>,
    id: u64,
    last: u64,
    anything: bool,
) -> MutexGuard<'static, Board> {
    while let Some((number, job)) = board.take(id, last, anything) {
        drop(board);
        // What a job calls, and what goes with it, must not call the driver.
        let outside = IN_HOST_FUNCTION.replace(true);
        (job.run)();
        IN_HOST_FUNCTION.set(outside);
        board = self::board();
        board.finish(id, number);
    }
    board.arm(id);
    board
}

/// What a thread of the driver does.
fn work() {
    let mut board = board();
    loop {
        board = find(board);
        let Some(id) = board.ready.pop_front() else { continue };
        if let Some(queue) = board.queues.get_mut(&id) {
            queue.ready = false;
        }
        board.idle -= 1;
        if !board.ready.is_empty() {
            board.call_thread();
        }
        board = serve(board, id, u64::MAX, true);
        board.idle += 1;
    }
}

/// Waits until a queue is ready.
fn find(mut board: MutexGuard<'static, Board>) -> MutexGuard<'static, Board> {
    if board.ready.is_empty() && !board.is_watched {
        board.is_watched = true;
        for _ in 0..LOOKS {
            let looked = READY.wait_timeout(board, INTERVAL).unwrap_or_else(PoisonError::into_inner);
            board = looked.0;
            if !board.ready.is_empty() {
                break;
            }
        }
        board.is_watched = false;
    }
    while board.ready.is_empty() {
        board = READY.wait(board).unwrap_or_else(PoisonError::into_inner);
    }
    board
}

fn board() -> MutexGuard<'static, Board> {
    lock(&BOARD)
}
