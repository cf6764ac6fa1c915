//! `cipherlane plan`: would this accelerator help this machine?
//!
//! | file | what it holds |
//! |---|---|
//! | `arguments`, `workload` | options; sizes and how often each comes |
//! | `host` | this machine's ways, measured |
//! | `device` | the accelerator, simulated in virtual time behind its driver |
//! | `forecast` | the two compared: verdicts by size, caller and over all |
//! | `outputs` | what is printed, JSON, the page |

mod arguments;
mod device;
mod forecast;
mod host;
mod outputs;
mod workload;

use cipherlane_core::Config;
use cipherlane_measure::machine::Machine;
use cipherlane_measure::others::Watch;
use cipherlane_measure::recorder::Recorder;

use self::arguments::Asked;
pub(crate) use self::arguments::PlanArgs;
use self::device::Device;
use self::host::{BASE, Host};
use self::outputs::Plan;
use crate::failure::Failure;
use crate::options::start;
use crate::output;
use crate::speed::Work;
use crate::speed::outputs::{is_stdout, write_whole};

pub(crate) fn run(args: &PlanArgs, mut config: Config) -> Result<(), Failure> {
    let device = Device::load(&args.device, &config)?;
    let settings = &device.settings;
    let asked = Asked::new(args, &settings.algorithms, &settings.key_bits)?;
    if let Some(path) = args.html.as_ref().filter(|path| !is_stdout(path)) {
        cipherlane_files::check(path).map_err(|error| Failure::path("write", path, &error))?;
    }
    let model = device.model(&asked.choice)?;
    // All of this machine's ways are looked at, whatever is forced otherwise.
    config.force = None;
    let host = Host::new(&start(config)?, &asked.choice)?;
    let watch = Watch::start();
    let mut recorder = Recorder::new(BASE);
    let mut serial = 0;
    for &(batch, depth) in &asked.callers {
        for &(size, _) in &asked.workload.shares {
            let work: Work = asked.work(size, batch);
            let mut measured = host.measure(work, depth, asked.time, serial)?;
            if let Some(predicted) = model.predict(&device, work, depth, serial + 1)? {
                let blocks = measured.runs[0].blocks.len();
                measured.runs.push(predicted.as_run(&device.driver, blocks));
            }
            serial += 2;
            recorder.add(&asked.case(work, depth), size as u64, &measured);
        }
    }
    let record = recorder.finish(Machine {
        others: watch.finish(),
        ..output::machine()
    });
    let forecasts = forecast::forecasts(&record, &device.driver, &asked.workload);
    let verdict = forecast::overall(&forecasts);
    let plan = Plan::new(&device, forecasts, verdict, record);
    if let Some(path) = &args.html {
        write_whole(path, plan.page().as_bytes())?;
    }
    match (args.output.json, &args.html) {
        (true, _) => output::json("plan", &plan),
        (false, Some(path)) if is_stdout(path) => Ok(()),
        (false, _) => output::show(&plan.text()),
    }
}
