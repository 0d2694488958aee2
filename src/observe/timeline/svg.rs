//! A timeline as one picture: threads from top to bottom, time from left to right, a colour for each batch.

use super::bars::{Bar, Timeline};
use crate::vocabulary::Stage;
use std::{fmt::Write as _, time::Duration};

const LEFT: f64 = 128.0;
const WIDTH: f64 = 1400.0;
const TOP: f64 = 34.0;
const ROW: f64 = 22.0;
const GAP: f64 = 6.0;
/// Batches next to each other have different colours.
const COLOURS: [&str; 8] = ["#7fb3d5", "#f5b971", "#8fce9b", "#e59ab0", "#b7a1d6", "#d9cf6b", "#74c7c1", "#e0926f"];
const HEAD: &str = r##"<defs><pattern id="w" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#f4f4f4"/><rect width="2" height="6" fill="#c9c9c9"/></pattern><pattern id="r" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#fde3e0"/><rect width="2" height="6" fill="#d9412f"/></pattern></defs>"##;

/// The scale from times to places on the picture.
struct Scale {
    per_second: f64,
}

impl Scale {
    fn width(&self, time: Duration) -> f64 {
        time.as_secs_f64() * self.per_second
    }

    fn x(&self, time: Duration) -> f64 {
        LEFT + self.width(time)
    }
}

impl Timeline {
    /// Returns the picture as SVG, which holds all that it needs. It has a lane for each thread, and a bar for each
    /// activity in the colour of its batch. Waits are hatched, those of the step in red. A bar shows its details when
    /// the mouse points at it.
    pub fn to_svg(&self) -> String {
        let scale = Scale { per_second: (WIDTH - LEFT - 10.0) / self.end().as_secs_f64().max(1e-9) };
        let lanes = self.lanes();
        let rows: usize = lanes.iter().map(|(_, rows)| rows).sum();
        let bottom = TOP + rows as f64 * ROW + lanes.len() as f64 * GAP;
        let height = bottom + 30.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\" font-size=\"11\" fill=\"#222222\">\n{HEAD}\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        self.axis(&mut svg, &scale, bottom);
        let mut y = TOP;
        for (lane, rows) in lanes {
            text(&mut svg, LEFT - 8.0, y + ROW / 2.0 + 4.0, "end", &lane.to_string());
            for bar in self.bars.iter().filter(|bar| bar.lane == lane) {
                draw(&mut svg, bar, &scale, y + bar.row as f64 * ROW);
            }
            y += rows as f64 * ROW + GAP;
        }
        legend(&mut svg, bottom + 8.0);
        svg.push_str("</svg>\n");
        svg
    }

    /// Draws lines at round times.
    #[expect(clippy::disallowed_methods, reason = "the scale of a picture, of which no bits are promised")]
    fn axis(&self, svg: &mut String, scale: &Scale, bottom: f64) {
        let rough = self.end().as_secs_f64().max(1e-9) / 12.0;
        let power = 10f64.powf(rough.log10().floor());
        let tick = [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| *step >= rough);
        let tick = Duration::from_secs_f64(tick.unwrap_or(rough)).max(Duration::from_nanos(1));
        let mut at = Duration::ZERO;
        while at <= self.end() && self.end() > Duration::ZERO {
            let x = scale.x(at);
            let _ = write!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#dddddd\"/>",
                TOP - 8.0
            );
            text(svg, x, TOP - 14.0, "middle", &if at.is_zero() { "0".into() } else { format!("{at:?}") });
            at += tick;
        }
    }
}

fn draw(svg: &mut String, bar: &Bar, scale: &Scale, y: f64) {
    let (x, width) = (scale.x(bar.start), scale.width(bar.end - bar.start).max(0.4));
    let colour = COLOURS[bar.batch.number % COLOURS.len()];
    let (fill, opacity) = match bar.activity {
        Stage::Wait => ("url(#r)", 1.0),
        activity if activity.is_wait() => ("url(#w)", 1.0),
        Stage::Ready => (colour, 0.4),
        _ => (colour, 1.0),
    };
    // A bar inside another one is less high.
    let inset = if bar.activity == Stage::Finish { 5.0 } else { 1.0 };
    let height = ROW - 2.0 * inset;
    let (name, number) = (bar.activity.name(), bar.batch.number);
    let device = bar.batch.device.map_or_else(String::new, |device| format!(", device {device}"));
    let stroke = if width > 3.0 { 0.4 } else { 0.0 }; // a wide stroke would hide a narrow bar
    let _ = write!(
        svg,
        "<rect x=\"{x:.2}\" y=\"{:.2}\" width=\"{width:.2}\" height=\"{height}\" fill=\"{fill}\" fill-opacity=\"{opacity}\" \
         stroke=\"#555555\" stroke-width=\"{stroke}\"><title>{name} of batch {number}, epoch {}{device}: {:.1?} from {:.1?} on</title>\
         </rect>",
        y + inset,
        bar.batch.epoch,
        bar.end - bar.start,
        bar.start,
    );
    let full = format!("{name} {number}");
    let fits = |label: &str| width > 6.5 * label.len() as f64;
    // A number alone could be taken for the number of the step next to it.
    let whole = matches!(bar.activity, Stage::Wait | Stage::Finish) || fits(&full);
    let label = if whole { full } else { number.to_string() };
    if fits(&label) {
        text(svg, x + width / 2.0, y + ROW / 2.0 + 4.0, "middle", &label);
    }
    svg.push('\n');
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}

fn legend(svg: &mut String, y: f64) {
    let entries =
        [(COLOURS[0], "a colour for each batch"), ("url(#r)", "the step waits"), ("url(#w)", "a thread waits")];
    for ((fill, words), x) in entries.into_iter().zip([0.0, 180.0, 300.0]) {
        let x = LEFT + x;
        let _ = write!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"14\" height=\"12\" fill=\"{fill}\" stroke=\"#555555\" stroke-width=\"0.4\"/>"
        );
        text(svg, x + 20.0, y + 10.0, "start", words);
    }
    svg.push('\n');
}
