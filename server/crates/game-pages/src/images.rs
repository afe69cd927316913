//! Which images lists may show. A list has many covers, and a small file may be an image of a billion
//! pixels, for which a phone has no memory; so images are measured before a list shows them.

use std::borrow::Cow;

use imagesize::ImageSize;
use percent_encoding::percent_decode_str;

use crate::svg;

/// The maximum number of bytes of a cover: lists show many of them at a time.
pub const MAX_COVER_BYTES: u64 = 2 * 1024 * 1024;
/// The maximum number of pixels on each side.
pub const MAX_PIXELS: usize = 2_048;

/// Returns the path of the file at an address of the game, which begins with a slash and may have a
/// query.
#[must_use]
pub fn path_of(address: &str) -> Option<Cow<'_, str>> {
    let path = address.split(['?', '#']).next()?;
    percent_decode_str(path.strip_prefix('/')?)
        .decode_utf8()
        .ok()
}

/// Returns the reason why an image with this content must not be shown, if there is one.
#[must_use]
pub fn refuse(path: &str, content: &[u8]) -> Option<String> {
    let kind = mime_guess::from_path(path).first();
    if kind.is_some_and(|kind| kind.subtype() == "svg") {
        return svg::refuse(content).map(str::to_owned);
    }
    let Some((width, height)) = size_of(content) else {
        return Some("is not an image of a known format: PNG, JPEG, WebP, GIF or SVG".into());
    };
    (width > MAX_PIXELS || height > MAX_PIXELS).then(|| {
        format!(
            "has {width} × {height} pixels, and a cover has at most {MAX_PIXELS} × {MAX_PIXELS}"
        )
    })
}

/// Returns the width and height of an image in a format whose decoders agree about them. In AVIF, the
/// frame may be larger than the container says.
fn size_of(content: &[u8]) -> Option<(usize, usize)> {
    if content.starts_with(&[0xff, 0xd8]) {
        return size_of_jpeg(content);
    }
    let is_png = content.starts_with(b"\x89PNG\r\n\x1a\n") && content.get(12..16) == Some(b"IHDR");
    let is_webp = content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP");
    if !is_png && !is_webp && !content.starts_with(b"GIF8") {
        return None;
    }
    let ImageSize { width, height } = imagesize::blob_size(content).ok()?;
    Some(match first_frame(content) {
        Some((right, bottom)) => (width.max(right), height.max(bottom)),
        None => (width, height),
    })
}

/// Returns the width and height of a JPEG (ITU-T T.81, Annex B): those of its first frame, before which
/// only segments with a length are accepted.
fn size_of_jpeg(content: &[u8]) -> Option<(usize, usize)> {
    let number = |at: usize| {
        let bytes = content.get(at..at + 2)?.try_into().ok()?;
        Some(usize::from(u16::from_be_bytes(bytes)))
    };
    let mut at = 2;
    loop {
        if *content.get(at)? != 0xff {
            return None;
        }
        match *content.get(at + 1)? {
            // Fill bytes.
            0xff => at += 1,
            // Frames, but not tables of Huffman or arithmetic codes, and not hierarchical ones.
            0xc0..=0xc3 | 0xc9..=0xcb => {
                let (height, width) = (number(at + 5)?, number(at + 7)?);
                // A height of 0 comes later.
                return (height > 0 && width > 0).then_some((width, height));
            }
            0xc4 | 0xcc | 0xdb | 0xdd | 0xe0..=0xef | 0xfe => at += 2 + number(at + 2)?.max(2),
            _ => return None,
        }
    }
}

/// Returns where the first frame of a GIF ends, to the right and below: browsers enlarge the image so
/// that it has room (GIF89a, "Image Descriptor").
fn first_frame(content: &[u8]) -> Option<(usize, usize)> {
    let byte = |at: usize| content.get(at).copied().map(usize::from);
    let number = |at: usize| Some(byte(at)? | (byte(at + 1)? << 8));
    let table = |flags: usize| match flags & 0x80 {
        0 => 0,
        _ => 3 << ((flags & 7) + 1),
    };
    if !content.starts_with(b"GIF8") {
        return None;
    }
    let mut at = 13 + table(byte(10)?);
    // Extensions: an introducer, a label, and blocks up to an empty one.
    while byte(at)? == 0x21 {
        at += 2;
        while byte(at)? != 0 {
            at += 1 + byte(at)?;
        }
        at += 1;
    }
    let is_frame = byte(at)? == 0x2c;
    is_frame.then_some(())?;
    Some((
        number(at + 1)? + number(at + 5)?,
        number(at + 3)? + number(at + 7)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of a PNG of this size, with an `IHDR` (PNG, "Image header").
    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        png.extend(width.to_be_bytes());
        png.extend(height.to_be_bytes());
        png.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
        png
    }

    /// A GIF whose screen and first frame have these sizes, with a table of colours and a comment.
    fn gif(screen: u16, left: u16, frame: u16) -> Vec<u8> {
        let mut gif = b"GIF89a".to_vec();
        gif.extend([screen.to_le_bytes(), screen.to_le_bytes()].concat());
        gif.extend([0x80, 0, 0, 0, 0, 0, 255, 255, 255]);
        gif.extend(b"\x21\xfe\x02hi\x01!\0");
        gif.push(0x2c);
        for number in [left, 0, frame, 1] {
            gif.extend(number.to_le_bytes());
        }
        gif.push(0);
        gif
    }

    #[test]
    fn an_image_is_measured_however_small_its_file_is() {
        for (path, content, fits) in [
            ("a.png", png(2_048, 2_048), true),
            ("a.png", png(30_000, 30_000), false),
            ("a.png", png(1, 2_049), false),
            // What counts is what it is, not what it is called.
            ("a.jpg", png(30_000, 1), false),
            ("a.gif", gif(2_048, 0, 2_048), true),
            ("a.gif", gif(2_049, 0, 1), false),
            ("a.gif", gif(1, 0, 65_535), false),
            ("a.gif", gif(1, 2_048, 1), false),
            ("a.gif", b"GIF89a".to_vec(), false),
            ("a.png", b"text".to_vec(), false),
            ("a.png", Vec::new(), false),
            ("a.svg", png(1, 1), false),
        ] {
            let refused = refuse(path, &content);
            assert_eq!(refused.is_none(), fits, "{path} {refused:?}");
        }
        let told = refuse("a.png", &png(30_000, 20_000)).unwrap();
        assert!(told.contains("30000 × 20000"), "{told}");
    }

    /// A JPEG with these segments before a frame of this size.
    fn jpeg(before: &[u8], width: u16, height: u16) -> Vec<u8> {
        let mut jpeg = [&[0xff, 0xd8], before, &[0xff, 0xc0, 0, 17, 8]].concat();
        jpeg.extend([height.to_be_bytes(), width.to_be_bytes()].concat());
        jpeg.extend([3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]);
        jpeg
    }

    #[test]
    fn an_image_cannot_show_another_size_than_it_says() {
        let comment = b"\xff\xfe\0\x04hi";
        assert_eq!(size_of(&jpeg(comment, 640, 480)), Some((640, 480)));
        let tables = [&b"\xff\xff\xe0\0\x02\xff\xdb\0\x03x"[..], comment].concat();
        assert_eq!(size_of(&jpeg(&tables, 9, 16_000)), Some((9, 16_000)));
        // Markers without a length, another image inside, a height that comes later.
        for before in [
            &b"\xff\xd0"[..],
            b"\xff\x01",
            b"\xff\xd8",
            b"\xff\xda",
            b"x",
        ] {
            assert_eq!(size_of(&jpeg(before, 1, 1)), None, "{before:?}");
        }
        assert_eq!(size_of(&jpeg(b"", 640, 0)), None);
        let mut apple = png(1, 1);
        apple.splice(8..8, *b"\0\0\0\x04CgBI\0\0\0\0\0\0\0\0");
        assert_eq!(size_of(&apple), None);
        let avif = b"\0\0\0\x14ftypavif\0\0\0\0avifmif1";
        assert_eq!(size_of(avif), None);
    }

    #[test]
    fn the_file_at_an_address_is_found_by_its_path() {
        assert_eq!(path_of("/b%20c.webp?v=2").as_deref(), Some("b c.webp"));
        assert_eq!(path_of("/a.png").as_deref(), Some("a.png"));
        assert_eq!(path_of("a.png"), None);
        assert_eq!(path_of("/%ff.png"), None);
    }
}
