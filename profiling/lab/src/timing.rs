//! How long things take, and how sure one can be of it.
//!
//! Every time is the median of at least [`MIN_SAMPLES`] samples after a warm-up, with the 20th and 80th percentiles beside
//! it, as Triton's `do_bench` reports them. Work on the device is timed by CUDA events, several repetitions a sample, so
//! that a sample is long against the events' resolution of about half a microsecond. That is *hot* timing in nvbench's
//! words: launches follow each other without a pause, and a kernel that is shorter than its launch shows the launch.
//! Buffers that fit into the L2 cache would look faster than memory is; [`rotation`] says how many sets must take turns.
//!
//! What this does not do: fix the clocks (a reader's machine is not ours to change), or subtract anything.
//!
//! On the emulated GPU, work is done once and there is no time: `None`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cudarc::driver::result::{DriverError, event};
use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUstream};
use record::Point;

use crate::range;

/// At least so many samples make a median.
pub const MIN_SAMPLES: usize = 25;

/// After [`MIN_SAMPLES`], sampling goes on until so much time has passed in all.
const SAMPLING: Duration = Duration::from_millis(200);

/// A sample repeats its work until it is about so long.
const SAMPLE_SECONDS: f64 = 1e-3;

/// The warm-up repeats the work for so long, and at least [`MIN_WARM_UPS`] times.
const WARM_UP: Duration = Duration::from_millis(20);
const MIN_WARM_UPS: usize = 3;

/// No more repetitions in a sample than the driver queues without making the CPU wait.
const MAX_REPEATS: usize = 500;

/// The spread of a time over its samples, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Half of the samples took less.
    pub median: f64,
    /// A fifth of the samples took less.
    pub p20: f64,
    /// A fifth of the samples took more.
    pub p80: f64,
    /// How many samples there were.
    pub samples: usize,
}

impl Timing {
    /// The time in seconds.
    pub fn seconds(self) -> Point {
        self.point(|seconds| seconds)
    }

    /// The time of one of `count` equal parts, in seconds.
    pub fn each(self, count: usize) -> Point {
        self.point(|seconds| seconds / count as f64)
    }

    /// The rate at which `bytes` were moved each time, in GB/s (10⁹ bytes).
    pub fn gigabytes_per_second(self, bytes: usize) -> Point {
        self.per_second(bytes as f64 * 1e-9)
    }

    /// The rate at which `work` was done each time, such as operations.
    pub fn per_second(self, work: f64) -> Point {
        self.point(|seconds| work / seconds)
    }

    fn point(self, from: impl Fn(f64) -> f64) -> Point {
        let (one, other) = (from(self.p20), from(self.p80));
        Point {
            value: Some(from(self.median)),
            low: Some(one.min(other)),
            high: Some(one.max(other)),
            samples: Some(self.samples),
        }
    }

    fn of(samples: &mut [f64]) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |fraction| percentile(samples, fraction);
        Self { median: at(0.5), p20: at(0.2), p80: at(0.8), samples: samples.len() }
    }
}

/// Two ways to the same result, timed in turn, so that both meet the same clocks and the same neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    /// Our times.
    pub ours: Timing,
    /// The times of the other.
    pub theirs: Timing,
    /// Their time over ours, pair by pair: above 1 ours is faster.
    pub speed: Point,
    /// Our time less theirs, pair by pair, in seconds.
    pub difference: Point,
}

/// Times work that is enqueued on `stream` by CUDA events. `work` enqueues one repetition and gets its number, by which
/// it may take turns among [`rotation`] sets of buffers. `None` on the emulated GPU, which has no times.
///
/// # Errors
/// Passes on the errors of `work` and of the driver.
pub fn device(stream: CUstream, mut work: impl FnMut(usize) -> Result<()>) -> Result<Option<Timing>> {
    if is_untimed() {
        work(0)?;
        synchronize(stream)?;
        return Ok(None);
    }
    let mut turn = 0..;
    let mut repeat = |repeats: usize| {
        let seconds = between_events(stream, || turn.by_ref().take(repeats).try_for_each(&mut work))?;
        Ok(seconds.as_secs_f64() / repeats as f64)
    };
    let repeats = warm_up(&mut repeat)?;
    let _measure = range("measure");
    sample(|| repeat(repeats)).map(|mut samples| Some(Timing::of(&mut samples)))
}

/// Times two kinds of work on `stream` in turn, by CUDA events. `None` on the emulated GPU.
///
/// # Errors
/// Passes on the errors of the work and of the driver.
pub fn device_pairs(
    stream: CUstream,
    mut ours: impl FnMut(usize) -> Result<()>,
    mut theirs: impl FnMut(usize) -> Result<()>,
) -> Result<Option<Pairs>> {
    if is_untimed() {
        ours(0)?;
        theirs(0)?;
        synchronize(stream)?;
        return Ok(None);
    }
    let mut repeat = |side: Side, repeats: usize| {
        let seconds = between_events(stream, || match side {
            Side::Ours => (0..repeats).try_for_each(&mut ours),
            Side::Theirs => (0..repeats).try_for_each(&mut theirs),
        })?;
        Ok(seconds.as_secs_f64() / repeats as f64)
    };
    let ours_repeats = warm_up(&mut |repeats| repeat(Side::Ours, repeats))?;
    let repeats = warm_up(&mut |repeats| repeat(Side::Theirs, repeats))?.max(ours_repeats);
    let _measure = range("measure");
    pairs(|side| repeat(side, repeats)).map(Some)
}

/// The time between two CUDA events on `stream`, with `work` enqueued between them; waits for both.
///
/// # Errors
/// Passes on the errors of `work` and of the driver.
pub fn between_events(stream: CUstream, work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let (begin, end) = (Event::new()?, Event::new()?);
    begin.record(stream)?;
    work()?;
    end.record(stream)?;
    Ok(Duration::from_secs_f64(begin.seconds_until(&end)?))
}

/// Times code on the CPU by the wall clock. Works everywhere.
pub fn host(mut work: impl FnMut()) -> Timing {
    let mut repeat = |repeats: usize| {
        let begin = Instant::now();
        (0..repeats).for_each(|_| work());
        Ok(begin.elapsed().as_secs_f64() / repeats as f64)
    };
    let repeats = warm_up(&mut repeat).unwrap_or(1);
    let mut samples = sample(|| repeat(repeats)).unwrap_or_default();
    Timing::of(&mut samples)
}

/// Times calls of the driver by the wall clock, one sample a call of `work`: launches, synchronous copies, allocations.
/// `None` on the emulated GPU.
///
/// # Errors
/// Passes on the errors of `work`.
pub fn host_call(mut work: impl FnMut() -> Result<()>) -> Result<Option<Timing>> {
    let times = laps(1, |clock| {
        work()?;
        clock.lap();
        Ok(())
    })?;
    Ok(times.map(|times| times[0]))
}

/// Times the `count` parts of `work` by the wall clock: `work` calls [`Clock::lap`] at the end of each. `None` on the
/// emulated GPU.
///
/// # Errors
/// Passes on the errors of `work`, and says so when it ends another number of laps.
pub fn laps(count: usize, mut work: impl FnMut(&mut Clock) -> Result<()>) -> Result<Option<Vec<Timing>>> {
    let mut run = || {
        let mut clock = Clock { last: Instant::now(), seconds: Vec::with_capacity(count) };
        work(&mut clock)?;
        ensure!(
            clock.seconds.len() == count,
            "{} laps were ended, {count} were announced",
            clock.seconds.len()
        );
        Ok(clock.seconds)
    };
    if is_untimed() {
        run()?;
        return Ok(None);
    }
    let warm = Instant::now();
    for _ in 0..warm_ups() {
        run()?;
        if warm.elapsed() > WARM_UP {
            break;
        }
    }
    let runs = sample(run)?;
    let lap = |i: usize| Timing::of(&mut runs.iter().map(|run| run[i]).collect::<Vec<_>>());
    Ok(Some((0..count).map(lap).collect()))
}

/// A stopwatch that [`laps`] hands to its work.
pub struct Clock {
    last: Instant,
    seconds: Vec<f64>,
}

impl Clock {
    /// Ends a lap and begins the next.
    pub fn lap(&mut self) {
        let now = Instant::now();
        self.seconds.push((now - self.last).as_secs_f64());
        self.last = now;
    }
}

/// Times two kinds of driver calls in turn, by the wall clock. `settle` runs untimed after each, for instance to wait until
/// the device is idle again. `None` on the emulated GPU.
///
/// # Errors
/// Passes on the errors of the three.
pub fn host_pairs(
    mut ours: impl FnMut() -> Result<()>,
    mut theirs: impl FnMut() -> Result<()>,
    mut settle: impl FnMut() -> Result<()>,
) -> Result<Option<Pairs>> {
    let mut run = |side: Side| {
        let begin = Instant::now();
        match side {
            Side::Ours => ours()?,
            Side::Theirs => theirs()?,
        }
        let seconds = begin.elapsed().as_secs_f64();
        settle().map(|()| seconds)
    };
    for _ in 0..warm_ups() {
        run(Side::Ours)?;
        run(Side::Theirs)?;
    }
    if is_untimed() {
        return Ok(None);
    }
    pairs(run).map(Some)
}

/// How many sets of buffers of `bytes` in all must take turns, so that none is still in the L2 cache of the first device
/// when its turn comes again: together they are four times as large as the cache.
pub fn rotation(bytes: usize) -> usize {
    const FALLBACK: usize = 64 << 20;
    let mut cache = 0;
    let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
    // SAFETY: `cache` outlives the call, which writes to it; device 0 is the first one.
    let code = unsafe { sys::cuDeviceGetAttribute(&mut cache, attribute, 0) };
    let known = code == sys::CUresult::CUDA_SUCCESS && cache > 0;
    let cache = usize::try_from(cache).ok().filter(|_| known).unwrap_or(FALLBACK);
    (4 * cache).div_ceil(bytes.max(1)).max(1)
}

/// Times are taken once after one warm-up, for a profiler that shows every launch. Set by `--once`.
pub(crate) static ONCE: AtomicBool = AtomicBool::new(false);

fn once() -> bool {
    ONCE.load(Ordering::Relaxed)
}

fn is_untimed() -> bool {
    crate::device::is_emulated_in_use()
}

fn warm_ups() -> usize {
    if once() { 1 } else { MIN_WARM_UPS }
}

/// Runs `repeat` until the device is awake and the caches are full, and says how many repetitions make a sample.
fn warm_up(repeat: &mut impl FnMut(usize) -> Result<f64>) -> Result<usize> {
    let _warmup = range("warmup");
    let begin = Instant::now();
    let mut seconds = repeat(1)?;
    if once() {
        return Ok(1);
    }
    let mut repeats = 1;
    let mut done = 1;
    while done < MIN_WARM_UPS || begin.elapsed() < WARM_UP {
        repeats = ((SAMPLE_SECONDS / seconds.max(1e-9)) as usize).clamp(1, MAX_REPEATS);
        seconds = repeat(repeats)?;
        done += repeats;
    }
    Ok(repeats)
}

fn sample<T>(mut take: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
    let begin = Instant::now();
    let mut samples = Vec::with_capacity(4 * MIN_SAMPLES);
    loop {
        samples.push(take()?);
        let enough = samples.len() >= MIN_SAMPLES && begin.elapsed() >= SAMPLING;
        if once() || enough || samples.len() >= 40 * MIN_SAMPLES {
            return Ok(samples);
        }
    }
}

/// Whose turn it is.
#[derive(Clone, Copy)]
enum Side {
    Ours,
    Theirs,
}

fn pairs(mut take: impl FnMut(Side) -> Result<f64>) -> Result<Pairs> {
    let mut ours_first = false;
    let samples = sample(|| {
        // Whoever comes second may find the clocks higher or the queue warmer: they change places each time.
        ours_first = !ours_first;
        if ours_first {
            let ours = take(Side::Ours)?;
            Ok((ours, take(Side::Theirs)?))
        } else {
            let theirs = take(Side::Theirs)?;
            Ok((take(Side::Ours)?, theirs))
        }
    })?;
    let timing = |of: fn(&(f64, f64)) -> f64| Timing::of(&mut samples.iter().map(of).collect::<Vec<_>>());
    Ok(Pairs {
        ours: timing(|pair| pair.0),
        theirs: timing(|pair| pair.1),
        speed: timing(|(ours, theirs)| theirs / ours).seconds(),
        difference: timing(|(ours, theirs)| ours - theirs).seconds(),
    })
}

/// The value below which `fraction` of the sorted samples lie, between neighbours by straight line.
fn percentile(sorted: &[f64], fraction: f64) -> f64 {
    let place = fraction * sorted.len().saturating_sub(1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    match (sorted.get(below), sorted.get(above)) {
        (Some(below_value), Some(above_value)) => {
            below_value + (above_value - below_value) * (place - below as f64)
        }
        _ => f64::NAN,
    }
}

fn synchronize(stream: CUstream) -> Result<()> {
    // SAFETY: the caller's stream is alive while it is being timed.
    let code = unsafe { sys::cuStreamSynchronize(stream) };
    code.result().context("waiting for the stream whose work is timed")
}

/// An event that keeps time.
struct Event(CUevent);

impl Event {
    fn new() -> Result<Self> {
        let event = event::create(CUevent_flags::CU_EVENT_DEFAULT);
        Ok(Self(event.context("creating an event to time by")?))
    }

    fn record(&self, stream: CUstream) -> Result<()> {
        // SAFETY: the event lives as long as `self`, the caller's stream while it is being timed.
        let recorded = unsafe { event::record(self.0, stream) };
        recorded.context("recording an event to time by")
    }

    fn seconds_until(&self, end: &Self) -> Result<f64> {
        // SAFETY: both events live and have been recorded.
        let milliseconds = unsafe {
            let waited: Result<(), DriverError> = event::synchronize(end.0);
            waited.and_then(|()| event::elapsed(self.0, end.0))
        };
        let milliseconds = milliseconds.context("waiting for the work that is timed")?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event came from `new` and is destroyed only here.
        let _ = unsafe { event::destroy(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_neighbours() {
        let samples = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(percentile(&samples, 0.5), 3.5);
        assert_eq!(percentile(&samples, 0.2), 2.0);
        assert_eq!(percentile(&samples, 0.8), 5.0);
        assert!(percentile(&[], 0.5).is_nan());
    }

    #[test]
    fn a_rate_turns_the_spread_around() {
        let timing = Timing { median: 2.0, p20: 1.0, p80: 4.0, samples: 25 };
        let rate = timing.per_second(8.0);
        assert_eq!((rate.low, rate.value, rate.high), (Some(2.0), Some(4.0), Some(8.0)));
    }

    #[test]
    fn host_times_are_those_of_the_work() {
        let timing = host(|| std::thread::sleep(Duration::from_millis(2)));
        assert!(timing.p20 >= 2e-3, "a sleep of 2 ms took {timing:?}");
        assert!(timing.samples >= MIN_SAMPLES);
    }

    #[test]
    fn pairs_take_turns() {
        let calls = std::cell::RefCell::new(String::new());
        let pairs = pairs(|side| {
            let (letter, seconds) = match side {
                Side::Ours => ('o', 1.0),
                Side::Theirs => ('t', 2.0),
            };
            calls.borrow_mut().push(letter);
            Ok(seconds)
        })
        .unwrap();
        assert_eq!(pairs.speed.value, Some(2.0));
        assert_eq!(pairs.difference.value, Some(-1.0));
        assert!(calls.borrow().starts_with("ottoottoo"), "{}", &calls.borrow()[..8]);
    }
}
