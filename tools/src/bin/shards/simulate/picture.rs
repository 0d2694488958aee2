//! A picture of the waits: a bar for each order and epoch.

use super::report::OrderReport;

/// The share of the steps that wait, as SVG.
pub(super) fn picture(title: &str, reports: &[OrderReport]) -> String {
    let epochs = reports.iter().flat_map(|report| (1..).zip(&report.epochs).map(|epoch| (&report.order, epoch)));
    let bars = epochs.enumerate().map(|(bar, (order, (epoch, load)))| {
        let (y, percent, requests) = (18 * bar + 54, 100.0 * load.waiting_steps, load.requests_per_s);
        format!(
            "<text x=\"190\" y=\"{y}\" text-anchor=\"end\">{order}, epoch {epoch}</text>\
             <path d=\"M200 {y}h{:.1}\" stroke=\"#4477aa\" stroke-width=\"14\"/>\
             <text x=\"610\" y=\"{y}\">{percent:.0} %, {requests:.0} requests/s</text>\n",
            4.0 * percent,
        )
    });
    let bars: Vec<String> = bars.collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 {}\" font-family=\"sans-serif\" font-size=\"12\" \
         dominant-baseline=\"middle\"><rect width=\"800\" height=\"100%\" fill=\"white\"/>\
         <text x=\"10\" y=\"18\">Steps that wait: {title}</text>\n{}</svg>\n",
        18 * bars.len() + 54,
        bars.concat(),
    )
}
