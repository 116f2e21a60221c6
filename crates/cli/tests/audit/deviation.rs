//! What an audit states of single attributes and of the label, against estimates that are carried out.

use super::common::{Folder, assert_close, attribute, number, patients, text};
use super::{BASE, with_patients};

/// Solves `A x = b`, n × n by rows, by elimination with pivots.
fn eliminate(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        b.swap(k, pivot);
        for i in k + 1..n {
            let (above, below) = a.split_at_mut(i);
            let f = below[0][k] / above[k][k];
            below[0].iter_mut().zip(&above[k]).skip(k).for_each(|(below, above)| *below -= f * above);
            b[i] -= f * b[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - known) / a[k][k];
    }
    b
}

/// Least squares with penalty nλ, without an intercept.
fn least_squares(x: &[Vec<f64>], y: &[f64], l2: f64) -> Vec<f64> {
    let (n, p) = (x.len() as f64, x[0].len());
    let gram =
        |i: usize, j: usize| x.iter().map(|r| r[i] * r[j]).sum::<f64>() + if i == j { n * l2 } else { 0.0 };
    let a = (0..p).map(|i| (0..p).map(|j| gram(i, j)).collect()).collect();
    eliminate(a, (0..p).map(|i| x.iter().zip(y).map(|(r, y)| r[i] * y).sum()).collect())
}

#[test]
fn no_unbiased_estimate_that_knows_one_level_applies_beats_the_stated_deviation() {
    let (sigma, l2) = (0.05, 0.02);
    for levels in [2_usize, 3] {
        // A category that decides nearly everything, so that its coefficients are large and differ.
        let wave = |i: usize, f: f64| (f * (i as f64 + 0.5)).sin();
        let level = |i: usize| (i * i + i / 3) % levels;
        let rows: Vec<(usize, f64, f64)> = (0..90)
            .map(|i| {
                let x = wave(i, 1.7);
                (level(i), x, 3.0 - 6.0 * level(i) as f64 + 0.5 * x + 0.2 * wave(i, 7.3))
            })
            .collect();
        let table: String = rows.iter().map(|(g, x, y)| format!("g{g},{x:?},{y:?}\n")).collect();
        let folder = Folder::new();
        folder.write("full.csv", format!("g,x,y\n{table}"));
        let line = format!(
            "audit full.csv --target y --l2 {l2} --scale none --one-hot full --no-intercept --label public --json"
        );
        let audit = folder.run(&format!("{line} --sigma {sigma}")).expect(0).json();
        let stated = number(attribute(&audit, "g"), "/min_sd");
        // Cramér–Rao under the constraint, by refits: directions that keep the sum, U = {e₀ − eⱼ}.
        let x: Vec<Vec<f64>> = rows
            .iter()
            .map(|&(g, x, _)| (0..levels).map(|l| f64::from(u8::from(l == g))).chain([x]).collect())
            .collect();
        let y: Vec<f64> = rows.iter().map(|r| r.2).collect();
        let mut least = f64::INFINITY;
        for i in 0..x.len() {
            let moved = |j: usize, h: f64| {
                let mut x = x.clone();
                (x[i][0], x[i][j]) = (x[i][0] + h, x[i][j] - h);
                least_squares(&x, &y, l2)
            };
            let h = 1e-4;
            let jacobian: Vec<Vec<f64>> = (1..levels)
                .map(|j| {
                    let (up, down) = (moved(j, h), moved(j, -h));
                    up.iter().zip(down).map(|(a, b)| (a - b) / (2.0 * h * sigma)).collect()
                })
                .collect();
            let information = |a: &Vec<f64>, b: &Vec<f64>| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let m: Vec<Vec<f64>> =
                jacobian.iter().map(|a| jacobian.iter().map(|b| information(a, b)).collect()).collect();
            for c in 0..levels {
                // Row c of U: 1 everywhere for the first level, −1 at its own place for the others.
                let u: Vec<f64> =
                    (1..levels).map(|j| if c == 0 { 1.0 } else { -f64::from(u8::from(j == c)) }).collect();
                let v = eliminate(m.clone(), u.clone());
                least = least.min(u.iter().zip(v).map(|(a, b)| a * b).sum::<f64>().sqrt());
            }
        }
        assert!(stated <= least * (1.0 + 1e-6), "{levels} levels: {stated} is stated, {least} is possible");
        if levels == 2 {
            assert_close(stated, least, 1e-5, "two levels have one direction");
        }
        let solved = folder.run(&format!("{line} --target-sd g={stated}")).expect(0).json();
        assert_close(number(&solved, "/sigma"), sigma, 1e-6, "the noise for that deviation");
        assert_close(number(attribute(&solved, "g"), "/min_sd"), stated, 1e-6, "what it achieves");
    }
}

#[test]
fn constant_columns_are_named_a_few_at_a_time_and_not_to_those_who_want_quiet() {
    let mut table = patients(120);
    for j in 0..20 {
        table[0].push(format!("flat{j}"));
        table.iter_mut().skip(1).for_each(|row| row.push("3".into()));
    }
    table[0].push("only".into());
    table.iter_mut().skip(1).for_each(|row| row.push("x".into()));
    let folder = Folder::new();
    folder.write("flat.csv", text(&table, ","));
    let run = folder.run(&format!("audit flat.csv {BASE} --l2 0.01")).expect(0);
    let flowing = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.contains("`flat7` and 12 more."), "{}", run.stdout);
    assert!(
        flowing.contains("One level only in the training rows: `enzyme_inducer`, `only`."),
        "{}",
        run.stdout
    );
    assert!(run.stderr.replace('\u{a0}', " ").contains("only (1 level)"), "{}", run.stderr);
    let quiet = folder.run(&format!("audit flat.csv {BASE} --l2 0.01 -q")).expect(0);
    assert!(quiet.stderr.is_empty() && !quiet.stdout.contains("Constant in"), "{}", quiet.stdout);
}

#[test]
fn a_secret_label_has_leakage_of_its_own() {
    let folder = with_patients(60);
    let line = format!("audit patients.csv {BASE} --l2 0.01 --scale none");
    let audit = folder.run(&format!("{line} --sigma 2 --releases 4 --out out --json")).expect(0).json();
    let label = &audit["label"];
    assert_eq!(label["name"], "dose");
    // By refits: the coefficients of least squares are linear in the target, so one step is the derivative.
    let (table, h) = (patients(60), 10.0);
    let dose = table[0].iter().position(|n| n == "dose").unwrap();
    let coefficients = |i: Option<usize>| -> Vec<f64> {
        let mut table = table.clone();
        if let Some(i) = i {
            table[i][dose] = (table[i][dose].parse::<f64>().unwrap() + h).to_string();
        }
        folder.write("moved.csv", text(&table, ","));
        let actual =
            folder.run(&format!("audit moved.csv {BASE} --l2 0.01 --scale none --json")).expect(0).json();
        actual["model"]["coefficients"].as_object().unwrap().values().map(|v| v.as_f64().unwrap()).collect()
    };
    let before = coefficients(None);
    let eta = |i: usize| {
        let moved = coefficients(Some(i));
        let squares: f64 = moved.iter().zip(&before).map(|(a, b)| (a - b).powi(2)).sum();
        squares.sqrt() / h / 2.0 * 4_f64.sqrt()
    };
    let max = number(label, "/eta_max");
    let all: Vec<f64> = (1..table.len()).map(eta).collect();
    assert_close(max, all.iter().copied().fold(0.0, f64::max), 1e-6, "the largest");
    assert_close(number(label, "/eta_mean"), all.iter().sum::<f64>() / all.len() as f64, 1e-6, "the mean");
    assert_close(number(label, "/min_sd"), 1.0 / max, 1e-9, "its deviation");
    assert!(folder.read("out/report.html").contains("dose<br><span class=\"say\">the label</span>"));
    let solved = folder.run(&format!("{line} --target-sd dose=3 --json")).expect(0).json();
    assert_close(number(&solved, "/label/min_sd"), 3.0, 1e-9, "what was asked for");
    let public = folder.run(&format!("{line} --label public --json")).expect(0).json();
    assert!(public.get("label").is_none());
}
