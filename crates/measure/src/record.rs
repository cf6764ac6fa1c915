//! The record of a whole session of measuring: the JSON object that `speed
//! --json` writes and later tools read, and its cells as CSV.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::crossover::{Crossing, Outcome, Shape};
use crate::machine::Machine;

/// What was done: everything that tells one cell from another, the driver
/// and the size aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Algorithm, by its CryptoAPI name.
    pub algorithm: String,
    /// Bits of the key; 0 if there is none.
    pub keybits: u32,
    /// `encrypt` or `decrypt`.
    pub direction: String,
    /// Requests an operation.
    pub batch: u64,
    /// Caller threads at once.
    pub threads: usize,
    /// Operations that the caller keeps under way; absent if it waits for each.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub depth: Option<u64>,
    /// Microseconds between two operations of a caller, in which it does something else; absent
    /// if it calls again at once. Times and rates are those of the operations alone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pause_us: Option<u64>,
}

/// One driver at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Algorithm, by its CryptoAPI name.
    pub algorithm: String,
    /// Bits of the key; 0 if there is none.
    pub keybits: u32,
    /// `encrypt` or `decrypt`.
    pub direction: String,
    /// The driver measured.
    pub driver: String,
    /// Bytes per request.
    pub size: u64,
    /// Requests an operation.
    pub batch: u64,
    /// Caller threads at once.
    pub threads: usize,
    /// Payload bytes per second on the wall clock, all caller threads together:
    /// the median of the blocks.
    pub bytes_per_second: f64,
    /// Lower end of its 95 % confidence interval.
    pub ci_low: f64,
    /// Upper end of its 95 % confidence interval.
    pub ci_high: f64,
    /// Median time of an operation, divided by its requests.
    pub ns_per_request_p50: f64,
    /// 99th percentile of the time of an operation, divided by its requests.
    pub ns_per_request_p99: f64,
    /// Processor time in user mode of the whole process for 10^9 bytes, in the
    /// middle half of the blocks by throughput.
    pub user_seconds_per_gb: f64,
    /// Processor time in the kernel of the whole process for 10^9 bytes, as above.
    pub system_seconds_per_gb: f64,
    /// Voluntary context switches of the whole process.
    pub voluntary_switches_per_request: f64,
    /// Involuntary context switches of the whole process.
    pub involuntary_switches_per_request: f64,
    /// Page faults of the whole process.
    pub page_faults_per_request: f64,
    /// Others disturbed a quarter of the blocks or more, or the interval is wide.
    pub noisy: bool,
    /// Operations that the caller keeps under way; absent if it waits for each.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub depth: Option<u64>,
    /// Microseconds between two operations of a caller; absent if it calls again at once.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pause_us: Option<u64>,
}

/// A driver against the base over all sizes of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrossoverEntry {
    /// What was done.
    #[serde(flatten)]
    pub case: Case,
    /// The driver that is compared.
    pub driver: String,
    /// The driver it is compared with.
    pub base: String,
    /// The shape of the whole curve.
    pub shape: Shape,
    /// Where the faster side changes.
    pub crossings: Vec<Crossing>,
    /// The ratio at each size.
    pub ratios: Vec<Ratio>,
    /// The result in words.
    pub sentence: String,
}

/// Throughput of a driver divided by that of the base at one size, paired by
/// round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Bytes per request.
    pub size: u64,
    /// The median ratio.
    pub ratio: f64,
    /// Lower end of its 95 % confidence interval.
    pub ci_low: f64,
    /// Upper end; absent where too few rounds leave it open.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ci_high: Option<f64>,
    /// Won, lost, or open: no verdict inside the noise.
    pub outcome: Outcome,
}

/// All cells of a session on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The machine and the date.
    pub machine: Machine,
    /// One a case, size and driver, in the order measured.
    pub cells: Vec<Cell>,
    /// One a case and driver other than the base.
    pub crossovers: Vec<CrossoverEntry>,
}

impl Case {
    /// `cbc(aes), 128-bit key, encrypt, 16 requests per batch, 2 threads, not
    /// waiting, 4 under way`; no key, a batch of one, one thread, waiting and no pauses go
    /// without saying.
    pub fn title(&self) -> String {
        let mut title = self.algorithm.clone();
        if self.keybits != 0 {
            title += &format!(", {}-bit key", self.keybits);
        }
        title += &format!(", {}", self.direction);
        if self.batch != 1 {
            title += &format!(", {} requests per batch", self.batch);
        }
        if self.threads != 1 {
            title += &format!(", {} threads", self.threads);
        }
        match self.depth {
            None => {}
            Some(1) => title += ", not waiting, 1 under way",
            Some(depth) => title += &format!(", not waiting, {depth} under way"),
        }
        if let Some(pause) = self.pause_us {
            title += &format!(", {pause} us between calls");
        }
        title
    }
}

impl Cell {
    /// What was done in this cell.
    pub fn case(&self) -> Case {
        Case {
            algorithm: self.algorithm.clone(),
            keybits: self.keybits,
            direction: self.direction.clone(),
            batch: self.batch,
            threads: self.threads,
            depth: self.depth,
            pause_us: self.pause_us,
        }
    }

    /// Processors kept busy at full speed: 1.0 is one whole core.
    pub fn load(&self) -> f64 {
        (self.user_seconds_per_gb + self.system_seconds_per_gb) * self.bytes_per_second / 1e9
    }
}

impl Record {
    /// Writes the JSON object, indented, with a newline at the end.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut out, self)?;
        out.write_all(b"\n")
    }

    /// Writes the cells as CSV (RFC 4180, but lines end in a newline alone),
    /// with the JSON's names in the first line.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_csv(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(
            out,
            "algorithm,keybits,direction,driver,size,batch,threads,bytes_per_second,ci_low,\
             ci_high,ns_per_request_p50,ns_per_request_p99,user_seconds_per_gb,\
             system_seconds_per_gb,voluntary_switches_per_request,\
             involuntary_switches_per_request,page_faults_per_request,noisy,depth,pause_us"
        )?;
        for cell in &self.cells {
            writeln!(
                out,
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                quoted(&cell.algorithm),
                cell.keybits,
                quoted(&cell.direction),
                quoted(&cell.driver),
                cell.size,
                cell.batch,
                cell.threads,
                cell.bytes_per_second,
                cell.ci_low,
                cell.ci_high,
                cell.ns_per_request_p50,
                cell.ns_per_request_p99,
                cell.user_seconds_per_gb,
                cell.system_seconds_per_gb,
                cell.voluntary_switches_per_request,
                cell.involuntary_switches_per_request,
                cell.page_faults_per_request,
                cell.noisy,
                optional(cell.depth),
                optional(cell.pause_us),
            )?;
        }
        Ok(())
    }
}

/// Nothing where there is none.
fn optional(number: Option<u64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// In quotes where a comma, a quote or a line end asks for it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::tests::{case, record};

    #[test]
    fn json_has_the_agreed_names_and_reads_back() {
        let record = record();
        let mut json = Vec::new();
        record.write_json(&mut json).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let names = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(names(&value), ["cells", "crossovers", "machine"]);
        let mut agreed = [
            "algorithm",
            "keybits",
            "direction",
            "driver",
            "size",
            "batch",
            "threads",
            "bytes_per_second",
            "ci_low",
            "ci_high",
            "ns_per_request_p50",
            "ns_per_request_p99",
            "user_seconds_per_gb",
            "system_seconds_per_gb",
            "voluntary_switches_per_request",
            "involuntary_switches_per_request",
            "page_faults_per_request",
            "noisy",
        ];
        agreed.sort_unstable();
        assert_eq!(names(&value["cells"][0]), agreed);
        assert_eq!(value["crossovers"][0]["shape"], "wins_between");
        assert_eq!(value["crossovers"][0]["algorithm"], case().algorithm);
        assert_eq!(serde_json::from_slice::<Record>(&json).unwrap(), record);
    }

    #[test]
    fn csv_quotes_names_with_commas_and_fills_every_column() {
        let mut csv = Vec::new();
        record().write_csv(&mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let mut lines = csv.lines();
        let columns = lines.next().unwrap().split(',').count();
        let first = lines.next().unwrap();
        let name = "\"authenc(hmac(sha256),cbc(aes))\",";
        let rest = first.strip_prefix(name).unwrap();
        assert_eq!(rest.split(',').count() + 1, columns);
        assert!(rest.starts_with("128,encrypt,software,1024,4,2,409600,409600,409600,"));
        assert_eq!(lines.count(), 5);
    }
}
