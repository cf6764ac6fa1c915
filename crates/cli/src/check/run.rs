//! Runs vectors on drivers through the public API: each alone, with others in one call, and
//! submitted with others without waiting.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use cipherlane_core::{
    Algorithm, Batch, Direction, Error, Framework, Kind, OwnedRequest, Request, Session, Status,
};

use super::case::{Case, NOT_SUPPORTED, Verdict};
use super::memory::{Regions, Shape};
use super::report::Report;
use super::trial::{Trial, trials};

/// The most requests put into one call.
const COMPANY: usize = 256;

/// How a request reaches the driver.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// `process` with this request only.
    Alone,
    /// `process` with many.
    Together,
    /// `submit` with many, then wait.
    Submitted,
}

impl Way {
    fn words(self, company: usize) -> String {
        match self {
            Way::Alone => "alone".to_owned(),
            Way::Together => format!("in one call with {company} requests"),
            Way::Submitted => format!("submitted in a batch of {company}"),
        }
    }
}

/// Runs `cases` on each of `drivers` and counts into `report`. `progress` hears of every vector
/// that is done on a driver.
pub(crate) fn run(
    framework: &Framework,
    drivers: &[&str],
    cases: &[Case],
    report: &mut Report,
    mut progress: impl FnMut(usize),
) {
    let groups = by_session(cases);
    for driver in drivers {
        for group in &groups {
            run_group(framework, driver, group, report);
            progress(group.len());
        }
    }
}

/// Groups the vectors that one session serves: same algorithm, key and length of the tag.
fn by_session(cases: &[Case]) -> Vec<Vec<&Case>> {
    let mut places: HashMap<_, usize> = HashMap::new();
    let mut groups: Vec<Vec<&Case>> = Vec::new();
    for case in cases {
        match places.entry((&case.algorithm, &case.auth_key, &case.key, case.tag.len())) {
            Entry::Occupied(place) => groups[*place.get()].push(case),
            Entry::Vacant(place) => {
                place.insert(groups.len());
                groups.push(vec![case]);
            }
        }
    }
    groups
}

fn run_group(framework: &Framework, driver: &str, group: &[&Case], report: &mut Report) {
    let first = group[0];
    let row = report.row(driver, &first.algorithm);
    let Ok(algorithm) = Algorithm::find(&first.algorithm) else {
        return row.skip(NOT_SUPPORTED, group.len());
    };
    let session = match open(framework, driver, algorithm, first) {
        Ok(session) => session,
        Err(Error::DriverUnusable { reason, .. }) => {
            return row.skip(&reason.to_string(), group.len());
        }
        Err(refusal) => {
            // A key or a tag that the algorithm does not take: the right answer to a vector
            // that is to be rejected, and no fault of the driver with another.
            for case in group {
                match case.verdict {
                    Verdict::Reject => row.pass(),
                    Verdict::Accept => row.skip(&refusal.to_string(), 1),
                }
            }
            return;
        }
    };
    let before = retries(framework, driver, algorithm);
    let mut faults: Vec<Option<String>> = vec![None; group.len()];
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        let mut all: Vec<(usize, Trial)> = group
            .iter()
            .enumerate()
            .flat_map(|(place, case)| trials(case, algorithm).into_iter().map(move |t| (place, t)))
            .filter(|(_, trial)| trial.direction == direction)
            .collect();
        // Neighbours of one shape, so that a driver gets many at a time.
        all.sort_by_key(|(_, trial)| trial.shape);
        for (way, company) in [
            (Way::Alone, 1),
            (Way::Together, COMPANY),
            (Way::Submitted, COMPANY),
        ] {
            // Requests that own their memory have no scatter list for a MAC.
            let askable = match way {
                Way::Submitted if algorithm.kind == Kind::Mac => {
                    all.partition_point(|(_, trial)| trial.shape < Shape::Scattered)
                }
                _ => all.len(),
            };
            for some in all[..askable].chunks(company) {
                let answers = ask(&session, algorithm, group, some, direction, way);
                for ((place, trial), answer) in some.iter().zip(answers) {
                    let verdict = answer.and_then(|(request, status)| {
                        trial.judge(group[*place], algorithm, &request, status)
                    });
                    if let Err(fault) = verdict {
                        faults[*place].get_or_insert_with(|| {
                            format!("{}, {}: {fault}", trial.words(), way.words(some.len()))
                        });
                    }
                }
            }
        }
    }
    for (case, fault) in group.iter().zip(faults) {
        match fault {
            None => row.pass(),
            Some(fault) => row.fail(case, fault),
        }
    }
    row.by_software(retries(framework, driver, algorithm) - before);
}

fn open(
    framework: &Framework,
    driver: &str,
    algorithm: &Algorithm,
    case: &Case,
) -> Result<Session, Error> {
    // The key of `authenc` is the MAC's followed by the cipher's.
    let key = [case.auth_key.as_slice(), &case.key].concat();
    let session = framework.session(algorithm.name, &key)?;
    session.driver(driver).tag_len(case.tag.len()).open()
}

/// Requests of a driver that software had to finish.
fn retries(framework: &Framework, driver: &str, algorithm: &Algorithm) -> u64 {
    let totals = framework.statistics(driver, algorithm.name);
    totals.map_or(0, |totals| totals.retries)
}

/// What became of each request, in the order of the trials; `Err` where it was never run.
type Answers = Vec<Result<(OwnedRequest, Status), String>>;

fn ask(
    session: &Session,
    algorithm: &Algorithm,
    group: &[&Case],
    trials: &[(usize, Trial)],
    direction: Direction,
    way: Way,
) -> Answers {
    let prepared = trials
        .iter()
        .map(|(place, trial)| trial.prepare(group[*place], algorithm));
    match way {
        Way::Alone | Way::Together => {
            let mut owned: Vec<OwnedRequest> = prepared.collect();
            let statuses = process(session, direction, &mut owned);
            owned.into_iter().zip(statuses).map(Ok).collect()
        }
        Way::Submitted => submit(session, direction, prepared.collect()),
    }
}

/// Processes requests over the memory of `owned`.
fn process(session: &Session, direction: Direction, owned: &mut [OwnedRequest]) -> Vec<Status> {
    let mut regions: Vec<Regions<'_>> = owned.iter_mut().map(Regions::of).collect();
    let mut requests: Vec<Request<'_>> = regions.iter_mut().map(Regions::request).collect();
    // The error is that of the first request that failed; the statuses tell of all.
    let _ = session.process(direction, &mut requests);
    requests.iter().map(Request::status).collect()
}

fn submit(session: &Session, direction: Direction, owned: Vec<OwnedRequest>) -> Answers {
    let expected = owned.len();
    let mut batch = Batch::new(direction);
    owned.into_iter().for_each(|request| batch.push(request));
    let mut answers = Answers::new();
    while !batch.is_empty() {
        match session.submit(&mut batch) {
            Ok(ticket) => {
                let landed = ticket.wait().into_requests();
                answers.extend(landed.into_iter().map(|request| {
                    let status = request.status();
                    Ok((request, status))
                }));
            }
            Err(error) => {
                answers.resize_with(expected, || Err(error.to_string()));
                break;
            }
        }
    }
    answers
}

#[cfg(test)]
mod tests;
