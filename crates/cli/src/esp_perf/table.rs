//! Results as text: a block a transform and direction.

use super::cells::{Cell, Results};
use crate::output;
use crate::units::digits;

/// A table for each transform, direction and size: a row a number of threads.
pub(super) fn text(results: &Results) -> String {
    let mut text = output::headline(&results.machine);
    for group in results.groups() {
        text += &format!("\n{}, {}\n", group[0].transform, group[0].direction);
        text += &block(group);
        text.push('\n');
    }
    text.push('\n');
    text += &output::wrap(
        "",
        "Mpps and Gbit/s are of packets carried. eff. threads: how many times as much as one \
         thread alone. eff. packets: how many times as much as with one packet per call. ~ is \
         noisy.",
    );
    text
}

fn block(cells: &[Cell]) -> String {
    let heads = [
        "size",
        "threads",
        "packets",
        "Mpps",
        "Gbit/s",
        "eff. threads",
        "eff. packets",
    ];
    let mut table = output::table(&heads, &[0, 1, 2, 3, 4, 5, 6]);
    for cell in cells {
        table.add_row([
            cell.size.clone(),
            cell.threads.to_string(),
            cell.multipacket.to_string(),
            digits((cell.packets_per_second / 1e6) as f32),
            digits((cell.bytes_per_second * 8.0 / 1e9) as f32) + if cell.noisy { "~" } else { "" },
            digits(cell.effective_threads as f32),
            digits(cell.multipacket_efficiency as f32),
        ]);
    }
    table.trim_fmt()
}
