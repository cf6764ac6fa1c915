//! Records of the kernel's rings, as perf_event_open(2) lays them out for the samples that
//! `events` asks for.

use perf_event::Record;

use super::events::Source;

const MMAP2: u32 = 10;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;

/// In the record's header: the thread stops, and could have gone on.
const SWITCH_OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;
/// In the record's header: the name comes with a new program.
const EXEC: u16 = 1 << 13;

/// In what every tracepoint begins with: it was passed while an interrupt was served.
const IN_INTERRUPT: u8 = 1 << 3;
/// Bytes of a woken thread's name.
const NAME: usize = 16;

/// From here on a number in a stack is a mark between two parts of it.
pub(super) const MARK: u64 = -4095_i64 as u64;
/// The mark before addresses of the kernel.
pub(super) const KERNEL: u64 = -128_i64 as u64;
/// The mark before addresses of the program.
pub(super) const USER: u64 = -512_i64 as u64;

/// What a record says, and when.
#[derive(Debug)]
pub(super) struct Happened {
    pub(super) time: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// On which processor.
    pub(super) processor: u32,
    pub(super) what: What,
}

/// Kinds of events that have windows of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kinds {
    /// System calls.
    Calls,
    /// Waits, their stacks, and who ends them.
    Waits,
}

#[derive(Debug)]
pub(super) enum What {
    /// A thread had a processor.
    Ran { period: u64, chain: Vec<u64> },
    /// A thread is about to stop.
    Stack { chain: Vec<u64> },
    /// A system call ended; it stands for `period` of them.
    Called {
        period: u64,
        number: u64,
        result: i64,
    },
    /// A thread ends another one's wait; where it was interrupted, the interrupt does.
    Woke {
        woken: u32,
        interrupt: bool,
        chain: Vec<u64>,
    },
    /// A thread wakes one of the kernel's; where it was interrupted, the interrupt does.
    Asked { woken: u32, interrupt: bool },
    /// A thread stops.
    Out { preempted: bool },
    /// A thread goes on.
    In,
    /// A file is mapped.
    Mapped {
        start: u64,
        length: u64,
        offset: u64,
        path: Vec<u8>,
    },
    /// A thread has a name.
    Named { name: Vec<u8>, exec: bool },
    /// A process or thread was started; `pid` and `tid` are the new one's.
    Started { parent: u32 },
    /// A thread has ended.
    Ended,
    /// The ring had no room.
    Lost { samples: u64 },
    /// A window of events of these kinds begins or ends. No ring says that either.
    Window {
        of: Kinds,
        is_open: bool,
        /// What the target has done until now: nanoseconds of processors for system calls, waits for waits.
        done: u64,
        /// System calls that the kernel has counted in the window that ends, those among them that
        /// the rings had no room for.
        counted: u64,
    },
    /// It is somebody's turn from now on, or nobody's. No ring says that: the program does.
    Turn { of: Option<u32> },
}

/// Reads from the front of a record.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (value, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*value))
    }

    fn u64(&mut self) -> Option<u64> {
        let (value, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*value))
    }

    /// Text up to its zero byte.
    fn text(&mut self) -> Vec<u8> {
        let end = self.0.iter().position(|byte| *byte == 0);
        self.0[..end.unwrap_or(self.0.len())].to_vec()
    }
}

/// What a record says; `None` for those that nobody needs.
pub(super) fn read(source: Source, record: &Record<'_>) -> Option<Happened> {
    parse(source, record.ty(), record.misc(), &record.to_contiguous())
}

fn parse(source: Source, kind: u32, misc: u16, data: &[u8]) -> Option<Happened> {
    let mut reader = Reader(data);
    if kind == SAMPLE {
        let (pid, tid) = (reader.u32()?, reader.u32()?);
        let time = reader.u64()?;
        let (processor, _) = (reader.u32()?, reader.u32()?);
        let period = reader.u64()?;
        let mut chain = || {
            let count = reader.u64()? as usize;
            (0..count.min(reader.0.len() / 8))
                .map(|_| reader.u64())
                .collect::<Option<Vec<u64>>>()
        };
        let what = match source {
            Source::Processor => What::Ran {
                period,
                chain: chain()?,
            },
            Source::Switch => What::Stack { chain: chain()? },
            Source::Call => {
                // The size, and eight bytes that every tracepoint has.
                let _ = (reader.u32()?, reader.u64()?);
                let number = reader.u64()?;
                let result = reader.u64()? as i64;
                What::Called {
                    period,
                    number,
                    result,
                }
            }
            Source::Wake => {
                let chain = chain()?;
                let (woken, interrupt) = woken(&mut reader)?;
                What::Woke {
                    woken,
                    interrupt,
                    chain,
                }
            }
            Source::Helper => {
                let (woken, interrupt) = woken(&mut reader)?;
                What::Asked { woken, interrupt }
            }
        };
        return Some(Happened {
            time,
            pid,
            tid,
            processor,
            what,
        });
    }
    // Behind every other record stand its process, thread, time and processor.
    let mut behind = Reader(data.get(data.len().checked_sub(24)?..)?);
    let (mut pid, mut tid, time) = (behind.u32()?, behind.u32()?, behind.u64()?);
    let processor = behind.u32()?;
    let what = match kind {
        SWITCH | SWITCH_CPU_WIDE if misc & SWITCH_OUT != 0 => What::Out {
            preempted: misc & PREEMPTED != 0,
        },
        SWITCH | SWITCH_CPU_WIDE => What::In,
        MMAP2 => {
            (pid, tid) = (reader.u32()?, reader.u32()?);
            let (start, length, offset) = (reader.u64()?, reader.u64()?, reader.u64()?);
            // The file's numbers, its protection and its flags.
            let _ = (reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?);
            What::Mapped {
                start,
                length,
                offset,
                path: reader.text(),
            }
        }
        COMM => {
            (pid, tid) = (reader.u32()?, reader.u32()?);
            What::Named {
                name: reader.text(),
                exec: misc & EXEC != 0,
            }
        }
        FORK => {
            pid = reader.u32()?;
            let parent = reader.u32()?;
            tid = reader.u32()?;
            What::Started { parent }
        }
        EXIT => {
            pid = reader.u32()?;
            let _parent = reader.u32()?;
            tid = reader.u32()?;
            What::Ended
        }
        LOST => {
            let _id = reader.u64()?;
            What::Lost {
                samples: reader.u64()?,
            }
        }
        LOST_SAMPLES => What::Lost {
            samples: reader.u64()?,
        },
        _ => return None,
    };
    Some(Happened {
        time,
        pid,
        tid,
        processor,
        what,
    })
}

/// Who is woken, and whether while an interrupt was served: the fields of a wake-up.
fn woken(reader: &mut Reader<'_>) -> Option<(u32, bool)> {
    let _size = reader.u32()?;
    let common = reader.u64()?.to_ne_bytes();
    reader.0 = reader.0.get(NAME..)?;
    Some((reader.u32()?, common[2] & IN_INTERRUPT != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_cut_off_is_none() {
        let words: Vec<u8> = (0..8u64).flat_map(u64::to_ne_bytes).collect();
        for source in [
            Source::Processor,
            Source::Switch,
            Source::Call,
            Source::Wake,
            Source::Helper,
        ] {
            for kind in 0..20 {
                for end in 0..words.len() {
                    // It may be some record, but it must not panic.
                    let _ = parse(source, kind, u16::MAX, &words[..end]);
                }
            }
        }
        assert!(parse(Source::Processor, SAMPLE, 0, &words[..20]).is_none());
    }

    #[test]
    fn switches_say_whether_the_thread_could_have_gone_on() {
        let behind: Vec<u8> = [7u32, 8]
            .iter()
            .flat_map(|id| id.to_ne_bytes())
            .chain(9u64.to_ne_bytes())
            .chain(3u64.to_ne_bytes())
            .collect();
        let out = parse(Source::Processor, SWITCH, SWITCH_OUT, &behind).unwrap();
        assert!(matches!(out.what, What::Out { preempted: false }));
        assert_eq!((out.pid, out.tid, out.time, out.processor), (7, 8, 9, 3));
        let out = parse(Source::Processor, SWITCH, SWITCH_OUT | PREEMPTED, &behind).unwrap();
        assert!(matches!(out.what, What::Out { preempted: true }));
        let on = parse(Source::Processor, SWITCH, 0, &behind).unwrap();
        assert!(matches!(on.what, What::In));
    }
}
