//! CPU clocks of single threads, readable by others while the thread lives.
#![allow(unsafe_code)] // The edge to the kernel's clocks: two calls that std does not offer.

use std::time::Duration;

/// Names the CPU clock of one thread; invalid once that thread has ended.
#[derive(Clone, Copy, Debug)]
pub struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    /// The calling thread's clock.
    #[must_use]
    pub fn current() -> Option<Self> {
        let mut id: libc::clockid_t = 0;
        // SAFETY: `pthread_self` is always valid for its own caller and `id` outlives the call.
        let refused = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut id) };
        (refused == 0).then_some(Self(id))
    }

    /// CPU time that the thread has used, user and system; `None` once it has ended.
    #[must_use]
    pub fn read(self) -> Option<Duration> {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` outlives the call; a stale clock id is refused with EINVAL.
        let refused = unsafe { libc::clock_gettime(self.0, &raw mut time) };
        (refused == 0).then(|| Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::ThreadClock;

    #[test]
    fn a_working_thread_uses_cpu() {
        let clock = ThreadClock::current().expect("a clock");
        let before = clock.read().expect("the time");
        let mut sum = 0_u64;
        while clock.read().expect("the time") == before {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(clock.read().expect("the time") > before);
    }
}
