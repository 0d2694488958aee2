//! A picture of the waits: a bar for each order and epoch.

use super::report::OrderReport;
use std::fmt::Write;

/// The height of a bar with its gap, and the width of a bar of all steps.
const BAR: usize = 18;
const WIDTH: f64 = 400.0;

/// The share of the steps that wait, as SVG.
pub(super) fn picture(title: &str, orders: &[OrderReport]) -> String {
    let (mut bars, mut y) = (String::new(), 2 * BAR);
    for order in orders {
        for (number, load) in (1..).zip(&order.epochs) {
            let (width, middle) = (WIDTH * load.waiting(), y + BAR / 2);
            // Writing to a string does not fail.
            _ = writeln!(
                bars,
                "<text x=\"190\" y=\"{middle}\" text-anchor=\"end\">{}, epoch {number}</text>\
                 <rect x=\"200\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" fill=\"#4477aa\"/>\
                 <text x=\"{:.1}\" y=\"{middle}\">{:.0} %, {:.0} requests/s</text>",
                order.name,
                BAR - 4,
                206.0 + width,
                100.0 * load.waiting(),
                load.rates()[0],
            );
            y += BAR;
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 {}\" font-family=\"sans-serif\" font-size=\"12\" \
         dominant-baseline=\"middle\"><rect width=\"800\" height=\"100%\" fill=\"white\"/>\
         <text x=\"10\" y=\"{BAR}\">Steps that wait: {title}</text>\n{bars}</svg>\n",
        y + BAR
    )
}
