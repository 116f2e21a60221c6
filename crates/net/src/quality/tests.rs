use super::*;
use crate::random::{Generator, Purpose};

const UNIT: Range = Range { low: 0.0, high: 1.0 };

#[derive(Deserialize)]
struct Case {
    case: usize,
    height: usize,
    width: usize,
    channels: usize,
    k: f64,
    mse: f64,
    psnr: f64,
    ssim: f64,
    haar_psi: f64,
    haar_psi_piq: f64,
}

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

/// The pictures of `testdata/net/quality.py`.
fn image(c: &Case, k: f64) -> Vec<f64> {
    let n = c.height * c.width * c.channels;
    let at = |i: usize| {
        let (y, x, ch) = (i / c.channels / c.width, i / c.channels % c.width, i % c.channels);
        let (yf, xf) = (y as f64, x as f64);
        let wave = (0.9 * yf * (1 + c.case) as f64 + 1.7 * xf + 2.3 * ch as f64).sin();
        0.5 + 0.5 * wave * (0.31 * xf * yf + 0.5 * k * (1 + y % 3) as f64).cos()
    };
    (0..n).map(at).collect()
}

/// Against scikit-image, piq and the definition in numpy.
#[test]
fn the_measures_are_those_of_the_reference_packages() {
    let golden: Golden = serde_json::from_str(include_str!("../../../../testdata/net/quality.json")).unwrap();
    assert_eq!(golden.cases.len(), 5);
    for c in &golden.cases {
        let shape = Shape::Image([c.height, c.width, c.channels]);
        let (a, b) = (image(c, 0.0), image(c, c.k));
        let q = quality(shape, &a, &b, UNIT).unwrap();
        assert!((q.mse / c.mse - 1.0).abs() < 1e-12);
        assert!((q.psnr.unwrap() - c.psnr).abs() < 1e-10);
        assert!((q.ssim.unwrap() - c.ssim).abs() < 1e-10, "{} against {}", q.ssim.unwrap(), c.ssim);
        let haar = q.haar_psi.unwrap();
        assert!((haar - c.haar_psi).abs() < 1e-10, "{haar} against {}", c.haar_psi);
        // piq computes partly in single precision
        assert!((haar - c.haar_psi_piq).abs() < 1e-4, "{haar} against piq's {}", c.haar_psi_piq);
        // the unit of the values does not matter, nor where black is
        let moved = |v: &[f64]| v.iter().map(|v| 7.0 * v - 3.0).collect::<Vec<f64>>();
        let wide = quality(shape, &moved(&a), &moved(&b), Range { low: -3.0, high: 4.0 }).unwrap();
        assert!((wide.ssim.unwrap() - c.ssim).abs() < 1e-9 && (wide.haar_psi.unwrap() - haar).abs() < 1e-9);
        assert!((wide.psnr.unwrap() - c.psnr).abs() < 1e-9);
    }
}

#[test]
fn equal_pictures_are_alike_and_flat_ones_have_an_answer() {
    let shape = Shape::Image([28, 28, 1]);
    let mut rng = Generator::new(1, Purpose::Other, 0);
    let a: Vec<f64> = (0..784).map(|_| rng.uniform()).collect();
    let flat = vec![0.5; 784];
    for same in [&a, &flat, &vec![0.0; 784]] {
        let q = quality(shape, same, same, UNIT).unwrap();
        assert_eq!((q.mse, q.psnr), (0.0, None));
        assert!((q.ssim.unwrap() - 1.0).abs() < 1e-12 && (q.haar_psi.unwrap() - 1.0).abs() < 1e-9);
    }
    // noise against flat: far from alike, and the more noise the less
    let noisy = |s: f64| flat.iter().zip(&a).map(|(f, a)| f + s * (a - 0.5)).collect::<Vec<f64>>();
    let at = |s: f64| quality(shape, &a, &noisy(s), UNIT).unwrap();
    let (little, more) = (at(0.9), at(0.1));
    assert!(little.ssim > more.ssim && little.haar_psi > more.haar_psi && little.psnr > more.psnr);
    assert!(more.ssim.unwrap() < 0.5);
}

#[test]
fn what_has_no_height_and_width_has_no_ssim_and_says_so() {
    let vector = Shape::Vector([784]);
    let (a, b) = (vec![0.1; 784], vec![0.2; 784]);
    let q = quality(vector, &a, &b, UNIT).unwrap();
    assert_eq!((q.ssim, q.haar_psi), (None, None));
    assert!((q.mse - 0.01).abs() < 1e-15 && (q.psnr.unwrap() - 20.0).abs() < 1e-12);
    let text = ssim(vector, &a, &b, UNIT).unwrap_err().to_string();
    assert!(
        text.contains("SSIM") && text.contains("no height and width") && text.contains("images"),
        "{text}"
    );
    let small = haar_psi(Shape::Image([8, 8, 1]), &a[..64], &b[..64], UNIT).unwrap_err().to_string();
    assert!(small.contains("8 × 8") && small.contains("16 × 16"), "{small}");
    let channels = haar_psi(Shape::Image([16, 16, 2]), &[0.0; 512], &[0.0; 512], UNIT).unwrap_err();
    assert!(channels.to_string().contains("2 channels"));
    assert!(quality(Shape::Image([16, 16, 2]), &[0.0; 512], &[0.0; 512], UNIT).unwrap().haar_psi.is_none());
}

#[test]
fn bad_values_are_named() {
    let shape = Shape::Image([28, 28, 1]);
    let good = vec![0.5; 784];
    let mut bad = good.clone();
    bad[3] = f64::NAN;
    let text = quality(shape, &good, &bad, UNIT).unwrap_err().to_string();
    assert!(text.contains("the reconstruction") && text.contains("position 3"), "{text}");
    assert!(quality(shape, &good[..700], &good[..700], UNIT).is_err());
    assert!(quality(shape, &good, &good[..700], UNIT).is_err());
    assert!(mse(&[], &[]).is_err());
    assert!(psnr(&good, &bad, UNIT).is_err());
    assert!(psnr(&good, &good, Range { low: 1.0, high: 1.0 }).is_err());
    assert!(mse(&[1e200], &[-1e200]).is_err());
}
