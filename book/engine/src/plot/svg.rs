//! A plotters backend that writes SVG for a page with themes: shapes have classes, not colours.
//!
//! plotters' own SVG backend writes fixed colours, so that a figure drawn for a light page is unreadable on a dark one.
//! Here a colour is the number of an entry in a [`Palette`], and the entry names the CSS classes of the shape; the theme
//! decides what they look like. plotters also counts in whole pixels: ours are tenths of a unit of the view box.

use std::convert::Infallible;
use std::fmt::Write as _;

use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

/// plotters' pixels in one unit of the view box.
pub(super) const PER_UNIT: f64 = 10.0;

/// What the shapes of a picture are, by number.
#[derive(Default)]
pub(super) struct Palette {
    entries: Vec<Entry>,
}

struct Entry {
    classes: String,
    /// What a pointer that rests on the shape reads.
    title: Option<String>,
}

impl Palette {
    /// A colour that stands for these CSS classes.
    pub(super) fn classes(&mut self, classes: impl Into<String>) -> RGBColor {
        self.entry(Entry { classes: classes.into(), title: None })
    }

    /// The same, for a shape that says what it is when a pointer rests on it.
    pub(super) fn titled(&mut self, classes: impl Into<String>, title: String) -> RGBColor {
        self.entry(Entry { classes: classes.into(), title: Some(title) })
    }

    fn entry(&mut self, entry: Entry) -> RGBColor {
        let found =
            self.entries.iter().position(|old| old.classes == entry.classes && old.title == entry.title);
        let number = found.unwrap_or_else(|| {
            self.entries.push(entry);
            self.entries.len() - 1
        });
        let [_, high, middle, low] = (number as u32).to_be_bytes();
        RGBColor(high, middle, low)
    }

    fn get(&self, color: BackendColor) -> &Entry {
        let (high, middle, low) = color.rgb;
        let number = u32::from_be_bytes([0, high, middle, low]) as usize;
        // A colour that nobody asked us for is plotters' black for text without a style: the first entry.
        self.entries.get(number).unwrap_or(&self.entries[0])
    }
}

/// Collects the shapes of one picture.
pub(super) struct Svg<'a> {
    out: &'a mut String,
    palette: &'a Palette,
    size: (f64, f64),
}

impl<'a> Svg<'a> {
    /// A picture of `size` units whose shapes are appended to `out`.
    pub(super) fn new(out: &'a mut String, palette: &'a Palette, size: (f64, f64)) -> Self {
        Self { out, palette, size }
    }

    /// Writes `<name attributes class="…"/>`, or with the title inside.
    fn element(&mut self, name: &str, attributes: &str, color: BackendColor) {
        let Entry { classes, title } = self.palette.get(color);
        // Writing to a string cannot fail.
        let _ = match title {
            None => write!(self.out, "<{name} class=\"{classes}\" {attributes}/>"),
            Some(title) => write!(
                self.out,
                "<{name} class=\"{classes}\" {attributes}><title>{}</title></{name}>",
                crate::html::escape(title)
            ),
        };
    }
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for Svg<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        ((self.size.0 * PER_UNIT) as u32, (self.size.1 * PER_UNIT) as u32)
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Drawn {
        self.draw_rect(point, (point.0 + 1, point.1 + 1), &color, true)
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        _fill: bool,
    ) -> Drawn {
        let color = style.color();
        if color.alpha > 0.0 {
            let (width, height) = (bottom_right.0 - upper_left.0, bottom_right.1 - upper_left.1);
            let attributes = format!(
                "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
                units(upper_left.0),
                units(upper_left.1),
                units(width),
                units(height)
            );
            self.element("rect", &attributes, color);
        }
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        let color = style.color();
        if color.alpha > 0.0 {
            self.element("path", &format!("d=\"{}\"", path_data(path)), color);
        }
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        _fill: bool,
    ) -> Drawn {
        let attributes = format!(
            "cx=\"{}\" cy=\"{}\" r=\"{}\"",
            units(center.0),
            units(center.1),
            units(radius.cast_signed())
        );
        self.element("circle", &attributes, style.color());
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        vertices: I,
        style: &S,
    ) -> Drawn {
        self.element("path", &format!("d=\"{}Z\"", path_data(vertices)), style.color());
        Ok(())
    }

    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, position: BackendCoord) -> Drawn {
        let Entry { classes, .. } = self.palette.get(style.color());
        let size = style.size() / PER_UNIT;
        let anchor = match style.anchor().h_pos {
            HPos::Left => "",
            HPos::Center => " text-anchor=\"middle\"",
            HPos::Right => " text-anchor=\"end\"",
        };
        // SVG places a baseline; the shifts are a sans serif's ascender and half its capitals.
        let baseline = match style.anchor().v_pos {
            VPos::Top => 0.76 * size,
            VPos::Center => 0.35 * size,
            VPos::Bottom => -0.24 * size,
        };
        let y = f64::from(position.1) / PER_UNIT + baseline;
        let _ = write!(
            self.out,
            "<text class=\"{classes}\" x=\"{}\" y=\"{}\" font-size=\"{}\"{anchor}>{}</text>",
            units(position.0),
            rounded(y),
            rounded(size),
            raised(text, size)
        );
        Ok(())
    }

    fn estimate_text_size<T: BackendTextStyle>(
        &self,
        text: &str,
        style: &T,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        Ok((text_width(text, style.size()).ceil() as u32, style.size().ceil() as u32))
    }
}

/// About how wide a text is in a sans serif of that size: no font is asked, because the reader's is unknown.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | ':' | ';' | '\'' | '|' | '(' | ')' | '['
            | ']' => 0.35,
            '\u{2009}' | '\u{202f}' => 0.2,
            ' ' | '/' | '-' => 0.35,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.9,
            'A'..='Z' => 0.68,
            '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.45,
            _ => 0.58,
        })
        .sum();
    // Most system fonts are a little narrower than this sum, one or two wider.
    em * size * 1.06
}

/// Escaped text whose superscript digits are raised ordinary ones: many fonts draw `¹⁰` too small to read.
fn raised(text: &str, size: f64) -> String {
    let mut out = String::new();
    let mut up = false;
    for character in text.chars() {
        let digit = SUPERSCRIPTS.iter().position(|&superscript| superscript == character);
        if digit.is_some() != up {
            up = !up;
            let (dy, font) = if up { (-0.38 * size, 0.76 * size) } else { (0.38 * size, size) };
            // A shift holds for what follows, so that its end has to shift back.
            let close = if up { "" } else { "</tspan>" };
            let _ = write!(out, "{close}<tspan dy=\"{}\" font-size=\"{}\">", rounded(dy), rounded(font));
        }
        match digit {
            Some(digit) => out.push_str(DIGITS[digit]),
            None => out.push_str(&crate::html::escape(character.encode_utf8(&mut [0; 4]))),
        }
    }
    if out.contains("<tspan") {
        out.push_str("</tspan>");
    }
    out
}

const SUPERSCRIPTS: [char; 11] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹', '⁻'];
const DIGITS: [&str; 11] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "\u{2212}"];

/// A path through the points, with relative steps: shorter than absolute ones.
fn path_data(points: impl IntoIterator<Item = BackendCoord>) -> String {
    let mut data = String::new();
    let mut last = None;
    for (x, y) in points {
        let _ = match last {
            None => write!(data, "M{} {}", units(x), units(y)),
            Some((old_x, old_y)) => write!(data, "l{} {}", units(x - old_x), units(y - old_y)),
        };
        last = Some((x, y));
    }
    data
}

/// Tenths as a decimal number, without a trailing `.0`.
fn units(tenths: i32) -> String {
    rounded(f64::from(tenths) / PER_UNIT)
}

pub(super) fn rounded(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    // Adding zero turns -0 into 0.
    format!("{}", rounded + 0.0)
}
