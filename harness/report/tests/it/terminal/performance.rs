//! The table of all figures.

use crate::sample::{case, colored, figure, screen, session, with, with_only};
use insta::assert_snapshot;
use muster_core::result::{CaseResult, Outcome, Phase};
use muster_report::{
    Results,
    performance::{CSV_COLUMNS, Format, report},
};

#[test]
fn a_narrow_screen_gets_a_heading_a_case() {
    assert_snapshot!(with(|results| report(results, Format::Pretty, &screen(80)).unwrap()), @"
    ============================== PERFORMANCE REPORT ==============================

    pvar                       pval  punit     ref  lower  upper  diff %  result
    ────────────────────────────────────────────────────────────────────────────
    hpl @eidf:gpu-service+default
      errors                    NaN              0             0          fail
    nbody %num_bodies=512000 @eidf:gpu-service+default on gpu-17
      flops                 7011.25  GFLOP/s  7440   6696   8184   -5.76  pass
    nbody %num_bodies=1024000 @eidf:gpu-service+default on gpu-17
      flops                 7439.68  GFLOP/s  7440   6696   8184    0.00  pass
    nbody_pods @eidf:gpu-service+default on 3 nodes
      node_flops gpu-16     2481.12  GFLOP/s  2480   2356          +0.05  pass
      node_flops gpu-17      2479.5  GFLOP/s  2480   2356          -0.02  pass
      node_flops gpu-18      1893.4  GFLOP/s  2480   2356         -23.65  fail
    osu_latency @eidf:gpu-service+default on cpu-1, cpu-2
      latency[8]                1.5  us        1.4          1.68   +7.14  pass
      latency[1048576]          110  us        100           120  +10.00  warn
      drift                  -100.5  ppm      -100   -101    -98   +0.50  pass
      lost                        0  packets     0     -2      5          pass
      sent               1073741824                                       -
    stream @eidf:gpu-service+default
      copy                      9.1  GB/s       12   10.8   13.2  -24.17  xfail
    ────────────────────────────────────────────────────────────────────────────

    12 figures of 6 cases
    6 cases without figures: 1 abort, 1 error{config}, 1 fail{sanity}, 1 pass,
      1 skip, 1 timeout{pending}
    ");
}

#[test]
fn a_screen_too_narrow_for_the_whole_table_is_not_filled() {
    assert_snapshot!(with(|results| report(results, Format::Pretty, &screen(120)).unwrap()), @"
    ============================== PERFORMANCE REPORT ==============================

    pvar                       pval  punit     ref  lower  upper  diff %  result
    ────────────────────────────────────────────────────────────────────────────
    hpl @eidf:gpu-service+default
      errors                    NaN              0             0          fail
    nbody %num_bodies=512000 @eidf:gpu-service+default on gpu-17
      flops                 7011.25  GFLOP/s  7440   6696   8184   -5.76  pass
    nbody %num_bodies=1024000 @eidf:gpu-service+default on gpu-17
      flops                 7439.68  GFLOP/s  7440   6696   8184    0.00  pass
    nbody_pods @eidf:gpu-service+default on 3 nodes
      node_flops gpu-16     2481.12  GFLOP/s  2480   2356          +0.05  pass
      node_flops gpu-17      2479.5  GFLOP/s  2480   2356          -0.02  pass
      node_flops gpu-18      1893.4  GFLOP/s  2480   2356         -23.65  fail
    osu_latency @eidf:gpu-service+default on cpu-1, cpu-2
      latency[8]                1.5  us        1.4          1.68   +7.14  pass
      latency[1048576]          110  us        100           120  +10.00  warn
      drift                  -100.5  ppm      -100   -101    -98   +0.50  pass
      lost                        0  packets     0     -2      5          pass
      sent               1073741824                                       -
    stream @eidf:gpu-service+default
      copy                      9.1  GB/s       12   10.8   13.2  -24.17  xfail
    ────────────────────────────────────────────────────────────────────────────

    12 figures of 6 cases
    6 cases without figures: 1 abort, 1 error{config}, 1 fail{sanity}, 1 pass,
      1 skip, 1 timeout{pending}
    ");
    let text = with_only(&["stream"], |results| report(results, Format::Pretty, &screen(120)).unwrap());
    assert!(text.contains("sysenv"), "it fits here:\n{text}");
}

#[test]
fn a_wide_screen_gets_every_column() {
    assert_snapshot!(with(|results| report(results, Format::Pretty, &screen(160)).unwrap()), @"
    ============================== PERFORMANCE REPORT ==============================

    name                       sysenv                    node(s)      pvar              punit          pval  reference  lower  upper  diff %  result
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    hpl                        eidf:gpu-service+default               errors                            NaN          0             0          fail
    nbody %num_bodies=512000   eidf:gpu-service+default  gpu-17       flops             GFLOP/s     7011.25       7440   6696   8184   -5.76  pass
    nbody %num_bodies=1024000  eidf:gpu-service+default  gpu-17       flops             GFLOP/s     7439.68       7440   6696   8184    0.00  pass
    nbody_pods                 eidf:gpu-service+default  gpu-16       node_flops        GFLOP/s     2481.12       2480   2356          +0.05  pass
                                                         gpu-17       node_flops        GFLOP/s      2479.5       2480   2356          -0.02  pass
                                                         gpu-18       node_flops        GFLOP/s      1893.4       2480   2356         -23.65  fail
    osu_latency                eidf:gpu-service+default  cpu-1,cpu-2  latency[8]        us              1.5        1.4          1.68   +7.14  pass
                                                                      latency[1048576]  us              110        100           120  +10.00  warn
                                                                      drift             ppm          -100.5       -100   -101    -98   +0.50  pass
                                                                      lost              packets           0          0     -2      5          pass
                                                                      sent                       1073741824                                   -
    stream                     eidf:gpu-service+default               copy              GB/s            9.1         12   10.8   13.2  -24.17  xfail
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    12 figures of 6 cases
    6 cases without figures: 1 abort, 1 error{config}, 1 fail{sanity}, 1 pass,
      1 skip, 1 timeout{pending}
    ");
}

#[test]
fn plain_lines_are_never_wrapped() {
    assert_snapshot!(with(|results| report(results, Format::Plain, &screen(80)).unwrap()), @"
    ============================== PERFORMANCE REPORT ==============================

    name                       sysenv                    node(s)      pvar              punit          pval  reference  lower  upper  diff %  result
    -------------------------  ------------------------  -----------  ----------------  -------  ----------  ---------  -----  -----  ------  ------
    hpl                        eidf:gpu-service+default               errors                            NaN          0             0          fail
    nbody %num_bodies=512000   eidf:gpu-service+default  gpu-17       flops             GFLOP/s     7011.25       7440   6696   8184   -5.76  pass
    nbody %num_bodies=1024000  eidf:gpu-service+default  gpu-17       flops             GFLOP/s     7439.68       7440   6696   8184    0.00  pass
    nbody_pods                 eidf:gpu-service+default  gpu-16       node_flops        GFLOP/s     2481.12       2480   2356          +0.05  pass
    nbody_pods                 eidf:gpu-service+default  gpu-17       node_flops        GFLOP/s      2479.5       2480   2356          -0.02  pass
    nbody_pods                 eidf:gpu-service+default  gpu-18       node_flops        GFLOP/s      1893.4       2480   2356         -23.65  fail
    osu_latency                eidf:gpu-service+default  cpu-1,cpu-2  latency[8]        us              1.5        1.4          1.68   +7.14  pass
    osu_latency                eidf:gpu-service+default  cpu-1,cpu-2  latency[1048576]  us              110        100           120  +10.00  warn
    osu_latency                eidf:gpu-service+default  cpu-1,cpu-2  drift             ppm          -100.5       -100   -101    -98   +0.50  pass
    osu_latency                eidf:gpu-service+default  cpu-1,cpu-2  lost              packets           0          0     -2      5          pass
    osu_latency                eidf:gpu-service+default  cpu-1,cpu-2  sent                       1073741824                                   -
    stream                     eidf:gpu-service+default               copy              GB/s            9.1         12   10.8   13.2  -24.17  xfail

    12 figures of 6 cases
    6 cases without figures: 1 abort, 1 error{config}, 1 fail{sanity}, 1 pass,
      1 skip, 1 timeout{pending}
    ");
}

#[test]
fn colours_say_the_verdict() {
    let text = with_only(&["osu_latency", "stream"], |results| report(results, Format::Pretty, &colored(120)).unwrap());
    assert_snapshot!(text.replace('\x1b', "^"), @"
    ^[1m============================== PERFORMANCE REPORT ==============================^[0m

    ^[1mpvar                      pval  punit     ref  lower  upper  diff %  result^[0m
    ───────────────────────────────────────────────────────────────────────────
    ^[1mosu_latency^[0m @eidf:gpu-service+default on cpu-1, cpu-2
      latency[8]               1.5  us        1.4          1.68   +7.14  ^[32mpass^[0m
      latency[1048576]         110  us        100           120  +10.00  ^[33mwarn^[0m
      drift                 -100.5  ppm      -100   -101    -98   +0.50  ^[32mpass^[0m
      lost                       0  packets     0     -2      5          ^[32mpass^[0m
      sent              1073741824                                       -
    ^[1mstream^[0m @eidf:gpu-service+default
      copy                     9.1  GB/s       12   10.8   13.2  -24.17  ^[33mxfail^[0m
    ───────────────────────────────────────────────────────────────────────────

    6 figures of 2 cases
    ");
}

#[test]
fn csv_has_every_digit_and_a_fixed_set_of_columns() {
    assert_snapshot!(with(|results| report(results, Format::Csv, &screen(80)).unwrap()).replace('\r', ""), @r#"
    name,sysenv,nodes,pvar,punit,pval,reference,lower,upper,diff_percent,result,section,outcome,hash,attempt,session
    hpl,eidf:gpu-service+default,,errors,,NaN,0,,0,,fail,,invalid{metrics},74fb67c8,1,20260105-070312-qkzvaxpe
    nbody %num_bodies=512000,eidf:gpu-service+default,gpu-17,flops,GFLOP/s,7011.25,7440,6696,8184,-5.762768817204301,pass,,pass,798275c1,1,20260105-070312-qkzvaxpe
    nbody %num_bodies=1024000,eidf:gpu-service+default,gpu-17,flops,GFLOP/s,7439.683,7440,6696,8184,-0.00426075268817214,pass,,pass,99a18000,1,20260105-070312-qkzvaxpe
    nbody_pods,eidf:gpu-service+default,gpu-16,node_flops,GFLOP/s,2481.125,2480,2356,,0.04536290322580645,pass,rfm-kqjzmvxa-0,fail{performance},ea0063fb,1,20260105-070312-qkzvaxpe
    nbody_pods,eidf:gpu-service+default,gpu-17,node_flops,GFLOP/s,2479.5,2480,2356,,-0.020161290322580645,pass,rfm-kqjzmvxa-1,fail{performance},ea0063fb,1,20260105-070312-qkzvaxpe
    nbody_pods,eidf:gpu-service+default,gpu-18,node_flops,GFLOP/s,1893.4,2480,2356,,-23.65322580645161,fail,rfm-kqjzmvxa-2,fail{performance},ea0063fb,1,20260105-070312-qkzvaxpe
    osu_latency,eidf:gpu-service+default,"cpu-1,cpu-2",latency[8],us,1.5,1.4,,1.68,7.1428571428571495,pass,,pass,ddd5a073,1,20260105-070312-qkzvaxpe
    osu_latency,eidf:gpu-service+default,"cpu-1,cpu-2",latency[1048576],us,110.00000000000001,100,,120,10.000000000000014,warn,,pass,ddd5a073,1,20260105-070312-qkzvaxpe
    osu_latency,eidf:gpu-service+default,"cpu-1,cpu-2",drift,ppm,-100.5,-100,-101,-98,0.5,pass,,pass,ddd5a073,1,20260105-070312-qkzvaxpe
    osu_latency,eidf:gpu-service+default,"cpu-1,cpu-2",lost,packets,0,0,-2,5,,pass,,pass,ddd5a073,1,20260105-070312-qkzvaxpe
    osu_latency,eidf:gpu-service+default,"cpu-1,cpu-2",sent,,1073741824,,,,,,,pass,ddd5a073,1,20260105-070312-qkzvaxpe
    stream,eidf:gpu-service+default,,copy,GB/s,9.1,12,10.8,13.2,-24.16666666666667,xfail,,xfail,dca83e71,1,20260105-070312-qkzvaxpe
    "#);
}

#[test]
fn a_table_without_figures_says_so() {
    assert_snapshot!(with_only(&["smoke", "p2p"], |results| report(results, Format::Pretty, &screen(80)).unwrap()), @"
    ============================== PERFORMANCE REPORT ==============================

    0 figures of 0 cases
    2 cases without figures: 1 pass, 1 skip
    ");
}

#[test]
fn a_spreadsheet_takes_no_text_for_a_formula() {
    let hostile = |text: &str| CaseResult {
        measurements: vec![figure(text, -1.0, text, None)],
        ..case(text, &[], Outcome::Pass, Phase::Performance)
    };
    let cases = ["=1+1", "+1", "-1", "@a", "say \"hi\", you"].map(hostile);
    let session = session();
    let text = report(&Results::new(&session, &cases), Format::Csv, &screen(80)).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<_> = reader.records().map(|row| row.unwrap()).collect();
    let cells: Vec<_> = rows.iter().map(|row| (&row[0], &row[3], &row[5])).collect();
    let expected = [
        ("'+1", "'+1", "-1"),
        ("'-1", "'-1", "-1"),
        ("'=1+1", "'=1+1", "-1"),
        ("'@a", "'@a", "-1"),
        ("say \"hi\", you", "say \"hi\", you", "-1"),
    ];
    assert_eq!(cells, expected);
    assert!(rows.iter().all(|row| row.len() == CSV_COLUMNS.len()));
    assert!(text.ends_with("\r\n"));
}

#[test]
fn every_figure_of_every_attempt_has_a_row() {
    with(|results| {
        let figures: usize = results.attempts().iter().map(|case| case.measurements.len()).sum();
        let rows = |format, width| report(results, format, &screen(width)).unwrap();
        assert_eq!(rows(Format::Csv, 80).lines().count(), figures + 1);
        for (format, width) in [(Format::Pretty, 80), (Format::Pretty, 200), (Format::Plain, 80)] {
            let text = rows(format, width);
            for case in results.attempts() {
                for figure in &case.measurements {
                    assert!(text.contains(&figure.label()), "{format:?} {width}: {}", figure.label());
                }
            }
        }
    });
}

#[test]
fn a_table_is_never_wider_than_the_screen() {
    for width in 74..180 {
        let text = with(|results| report(results, Format::Pretty, &screen(width)).unwrap());
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{widest:?} at {width}:\n{text}");
    }
}
