//! Requests whose payload is a list of segments.

use super::Request;

impl<'a> Request<'a> {
    /// Read one list of segments, write another; the cuts may differ, the totals may not.
    pub fn scatter<'b>(input: &'a [&'b [u8]], output: &'a mut [&'b mut [u8]]) -> Self {
        let mut request = Self::mac_scatter(input);
        request.output_len = output.iter().map(|s| s.len()).sum();
        request.output_segments = count(output.len());
        request.output = output.as_mut_ptr().cast();
        request
    }

    /// Work on a list of segments in place.
    pub fn scatter_in_place<'b>(segments: &'a mut [&'b mut [u8]]) -> Self {
        let len = segments.iter().map(|s| s.len()).sum();
        let segment_count = count(segments.len());
        let pointer = segments.as_mut_ptr();
        // SAFETY: the fields are made consistent below.
        let mut request = unsafe { Self::from_raw(pointer.cast(), len, pointer.cast(), len) };
        request.input_segments = segment_count;
        request.output_segments = segment_count;
        request
    }

    /// For a MAC: read a list of segments.
    pub fn mac_scatter<'b>(input: &'a [&'b [u8]]) -> Self {
        let len = input.iter().map(|s| s.len()).sum();
        // SAFETY: no output; the pointer is made a list of segments below.
        let mut request =
            unsafe { Self::from_raw(input.as_ptr().cast(), len, std::ptr::null_mut(), 0) };
        request.input_segments = count(input.len());
        request
    }

    /// For drivers that [scatter](crate::Transform::scatters): address and length of each
    /// region of the input, in order; one where it is flat.
    pub fn input_regions(&self) -> impl Iterator<Item = (*const u8, usize)> {
        let flat = (self.input_segments == 0).then_some((self.input, self.input_len));
        let segments = self.input_segments().iter();
        flat.into_iter()
            .chain(segments.map(|s| (s.as_ptr(), s.len())))
    }

    /// The same of the output; none where there is no output.
    pub fn output_regions(&mut self) -> impl Iterator<Item = (*mut u8, usize)> {
        let is_flat = self.output_segments == 0 && self.has_output();
        let flat = is_flat.then_some((self.output, self.output_len));
        let segments = match self.output_segments {
            0 => &mut [],
            _ => self.output_segments_mut(),
        };
        flat.into_iter()
            .chain(segments.iter_mut().map(|s| (s.as_mut_ptr(), s.len())))
    }

    /// None where it is flat.
    fn input_segments(&self) -> &[&'a [u8]] {
        match self.input_segments {
            0 => &[],
            // SAFETY: `input` was set from a slice of that many segments (`&[u8]` and
            // `&mut [u8]` have one layout), borrowed for 'a.
            n => unsafe { std::slice::from_raw_parts(self.input.cast(), n as usize) },
        }
    }

    pub(super) fn output_segments_mut(&mut self) -> &mut [&'a mut [u8]] {
        assert!(self.output_segments > 0, "a flat request has no segments");
        // SAFETY: `output` was set from an exclusive slice of that many segments.
        unsafe { std::slice::from_raw_parts_mut(self.output.cast(), self.output_segments as usize) }
    }

    /// Copies the input of a scattered or flat request into `flat`, which has its length.
    pub(crate) fn gather(&self, flat: &mut [u8]) {
        if self.input_segments == 0 {
            return flat.copy_from_slice(self.input());
        }
        let mut rest = flat;
        for segment in self.input_segments() {
            let (head, tail) = rest.split_at_mut(segment.len());
            head.copy_from_slice(segment);
            rest = tail;
        }
    }

    /// The output, flat.
    pub(crate) fn copy_output(&mut self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(self.output_len);
        for (start, len) in self.output_regions() {
            // SAFETY: a region of the output, which is ours while `self` is borrowed.
            copy.extend_from_slice(unsafe { std::slice::from_raw_parts(start, len) });
        }
        copy
    }

    /// Copies `flat` into the output of a scattered or flat request.
    pub(crate) fn distribute(&mut self, flat: &[u8]) {
        if self.output_segments == 0 {
            return self.data().get_out().copy_from_slice(flat);
        }
        let mut rest = flat;
        for segment in self.output_segments_mut() {
            let (head, tail) = rest.split_at(segment.len());
            segment.copy_from_slice(head);
            rest = tail;
        }
    }

    /// A flat request over `flat` in place, with this one's IV, additional data and tag.
    ///
    /// # Safety
    /// This request must not be used until the result is gone: they share the tag region.
    pub(crate) unsafe fn flattened<'b>(&self, flat: &'b mut [u8]) -> Request<'b>
    where
        'a: 'b,
    {
        let mut request = if self.has_output() {
            Request::in_place(flat)
        } else {
            Request::mac(flat)
        };
        (request.iv, request.iv_len) = (self.iv, self.iv_len);
        (request.aad, request.aad_len) = (self.aad, self.aad_len);
        (request.tag, request.tag_len) = (self.tag, self.tag_len);
        request
    }
}

fn count(segments: usize) -> u32 {
    u32::try_from(segments).expect("a scatter list has fewer than 2^32 segments")
}
