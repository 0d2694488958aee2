// Makes the images of a batch from decoded pictures: part, resize, flip, colours, values, planes.
//
// One block makes one row of one image. It resizes the columns of the part to that row, rounds to bytes, and then
// resizes along the row: the order and the rounding of the crate fast_image_resize. A cubic filter goes along the rows
// first, as on the host. The weights are that crate's, without their rounding to 16 bits.
//
// Colours change as on the host: the same operations in the same order, none of them fused. A contrast needs the mean of
// the whole image. So `resample` leaves the bytes before it and their sum, and `finish` does the rest.

// The words of an entry: those of `PictureRow`. Then the address (two words) and the bytes of a line of the picture, the
// address of the bytes before a contrast (two words), one word of padding, and their sum (two words).
enum { KIND = 0, START = 4, ACROSS = 6, DOWN = 8, PART = 10, RESIZED = 12, FILTER = 14, WINDOW = 15, MIRROR = 17,
       CHANGES = 21, ERASED = 33, COLOUR = 37, ADDRESS = 38, PITCH = 40, BEFORE = 41, SUM = 44, WORDS = 46 };

enum { MOST = 6, NONE = 0, BRIGHTNESS = 1, CONTRAST = 2, SATURATION = 3 };
enum { NEAREST = 0, BILINEAR = 1, BICUBIC = 2 };

__device__ float weight(int filter, float x) {
    x = fabsf(x);
    if (filter == BILINEAR) return x < 1.0f ? 1.0f - x : 0.0f;
    if (x < 1.0f) return (1.5f * x - 2.5f) * x * x + 1.0f;
    return x < 2.0f ? (((x - 5.0f) * x + 8.0f) * x - 4.0f) * -0.5f : 0.0f;
}

// The pixels that make one pixel of the result: `first` to `last`, with weights by their distance from the middle.
struct Taps {
    int first, last;
    float from, step, sum; // the first distance, the next one, the sum of all weights

    __device__ Taps(int filter, int at, int source, int target) {
        double scale = (double)source / target;
        if (filter == NEAREST) {
            first = min((int)(scale * 0.5 + scale * at), source - 1);
            last = first + 1;
            from = 0.0f, step = 0.0f, sum = 1.0f;
            return;
        }
        double wide = scale > 1.0 ? scale : 1.0, middle = (at + 0.5) * scale, radius = wide * filter;
        first = max((int)floor(middle - radius), 0);
        last = min((int)ceil(middle + radius), source);
        from = (float)((first + 0.5 - middle) / wide), step = (float)(1.0 / wide), sum = 0.0f;
        for (int tap = first; tap < last; tap++) sum += weight(filter, from + (tap - first) * step);
    }

    __device__ float of(int filter, int tap) const {
        return filter == NEAREST ? 1.0f : weight(filter, from + (tap - first) * step) / sum;
    }
};

__device__ unsigned char rounded(float x) { return (unsigned char)fminf(fmaxf(floorf(x + 0.5f), 0.0f), 255.0f); }

// Resizes along a row of pixels that are `step` bytes apart, rounds to bytes, and adds this share of them.
__device__ void along(const Taps& taps, int filter, const unsigned char* row, long long step, float share, float* sums) {
    float own[3] = {0.0f, 0.0f, 0.0f};
    for (int tap = taps.first; tap < taps.last; tap++) {
        float part = taps.of(filter, tap);
        for (int c = 0; c < 3; c++) own[c] += part * row[tap * step + c];
    }
    for (int c = 0; c < 3; c++) sums[c] += share * rounded(own[c]);
}

__device__ void put(unsigned char* out, size_t at, const unsigned char* values, unsigned size, int channel, unsigned byte) {
    size_t value = channel * 256 + byte;
    if (size == 1) out[at] = values[value];
    else if (size == 2) ((unsigned short*)out)[at] = ((const unsigned short*)values)[value];
    else ((unsigned*)out)[at] = ((const unsigned*)values)[value];
}

__device__ const unsigned char* address(const int* words) {
    return (const unsigned char*)((unsigned long long)(unsigned)words[0] | (unsigned long long)(unsigned)words[1] << 32);
}

// As Rust's `as u8`: rounds towards zero, within 0 to 255.
__device__ int byte(float x) { return (int)fminf(fmaxf(x, 0.0f), 255.0f); }

__device__ int blend(int of, float rest, float factor) {
    return byte(__fadd_rn(__fmul_rn((float)of, factor), __fmul_rn(rest, __fsub_rn(1.0f, factor))));
}

__device__ int grey(const int* rgb) { return (19588 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2]) >> 16; }

__device__ float once(float x) { return x >= 6.0f ? __fsub_rn(x, 6.0f) : x; }

__device__ void hue(int* rgb, float turn) {
    int most = max(rgb[0], max(rgb[1], rgb[2])), least = min(rgb[0], min(rgb[1], rgb[2]));
    if (most == least) return;
    float chroma = (float)(most - least), sixths;
    if (most == rgb[0]) sixths = __fdiv_rn((float)(rgb[1] - rgb[2]), chroma);
    else if (most == rgb[1]) sixths = __fadd_rn(__fdiv_rn((float)(rgb[2] - rgb[0]), chroma), 2.0f);
    else sixths = __fadd_rn(__fdiv_rn((float)(rgb[0] - rgb[1]), chroma), 4.0f);
    float turned = __fadd_rn(sixths, __fmul_rn(6.0f, turn));
    turned = once(turned < 0.0f ? __fadd_rn(turned, 6.0f) : turned);
    for (int c = 0; c < 3; c++) {
        float k = once(__fadd_rn((float)(5 - 2 * c), turned));
        float share = fminf(fmaxf(fminf(k, __fsub_rn(4.0f, k)), 0.0f), 1.0f);
        rgb[c] = byte(__fadd_rn(__fsub_rn((float)most, __fmul_rn(chroma, share)), 0.5f));
    }
}

// Makes the changes from `nth` on, up to a contrast or to the end. Returns where it stopped.
__device__ int change(const int* changes, int nth, int* rgb) {
    for (; nth < MOST; nth++) {
        int kind = changes[2 * nth];
        float strength = __int_as_float(changes[2 * nth + 1]);
        if (kind == NONE) return MOST;
        if (kind == CONTRAST) return nth;
        if (kind == BRIGHTNESS) {
            for (int c = 0; c < 3; c++) rgb[c] = byte(__fmul_rn((float)rgb[c], strength));
        } else if (kind == SATURATION && strength == 0.0f) {
            rgb[0] = rgb[1] = rgb[2] = (19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16;
        } else if (kind == SATURATION) {
            float rest = (float)grey(rgb);
            for (int c = 0; c < 3; c++) rgb[c] = blend(rgb[c], rest, strength);
        } else {
            hue(rgb, strength);
        }
    }
    return MOST;
}

__device__ int contrast_of(const int* entry) {
    for (int nth = 0; nth < MOST; nth++)
        if (entry[CHANGES + 2 * nth] == CONTRAST) return nth;
    return MOST;
}

// Erases, and writes a pixel of the result. `at` is its place in the red plane.
__device__ void end(const int* entry, int x, int y, int* rgb, unsigned char* out, size_t at, size_t plane,
                    const unsigned char* values, unsigned size) {
    const int* erased = entry + ERASED;
    if (x >= erased[0] && x - erased[0] < erased[2] && y >= erased[1] && y - erased[1] < erased[3])
        for (int c = 0; c < 3; c++) rgb[c] = entry[COLOUR] >> 8 * c & 255;
    for (int c = 0; c < 3; c++) put(out, at + c * plane, values, size, c, rgb[c]);
}

extern "C" __global__ void resample(int* table, const unsigned char* values, unsigned size, unsigned width,
                                    unsigned height, unsigned char* out) {
    extern __shared__ unsigned char line[]; // the part's columns, three bytes each
    __shared__ unsigned total;
    int* entry = table + (size_t)blockIdx.y * WORDS;
    const unsigned char* source = address(entry + ADDRESS);
    unsigned y = blockIdx.x;
    size_t plane = (size_t)width * height, row = (size_t)blockIdx.y * 3 * plane + (size_t)y * width;

    if (!entry[KIND]) {
        for (unsigned x = threadIdx.x; x < width; x += blockDim.x)
            for (int c = 0; c < 3; c++) put(out, row + c * plane + x, values, size, c, source[c * plane + (size_t)y * width + x]);
        return;
    }

    int filter = entry[FILTER], columns = entry[PART];
    long long pitch = entry[PITCH];
    long long across = entry[ACROSS + 1] * pitch + 3 * entry[ACROSS], down = entry[DOWN + 1] * pitch + 3 * entry[DOWN];
    source += entry[START + 1] * pitch + 3 * entry[START];
    Taps vertical(filter, entry[WINDOW + 1] + (int)y * entry[MIRROR + 1], entry[PART + 1], entry[RESIZED + 1]);
    // Pillow's rule: see `is_down_first`. Other filters go down first.
    int gone = entry[PART + 1] - entry[RESIZED + 1];
    bool rows_first = filter == BICUBIC && (gone <= 0 || gone <= 2 * (columns - entry[RESIZED]));
    for (int column = threadIdx.x; column < columns && !rows_first; column += blockDim.x) {
        float sums[3] = {0.0f, 0.0f, 0.0f};
        for (int tap = vertical.first; tap < vertical.last; tap++) {
            const unsigned char* pixel = source + column * across + tap * down;
            float share = vertical.of(filter, tap);
            for (int c = 0; c < 3; c++) sums[c] += share * pixel[c];
        }
        for (int c = 0; c < 3; c++) line[3 * column + c] = rounded(sums[c]);
    }
    bool first_part = contrast_of(entry) < MOST;
    unsigned char* before = (unsigned char*)address(entry + BEFORE);
    unsigned own = 0; // of this thread's pixels
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    for (unsigned x = threadIdx.x; x < width; x += blockDim.x) {
        Taps taps(filter, entry[WINDOW] + (int)x * entry[MIRROR], columns, entry[RESIZED]);
        float sums[3] = {0.0f, 0.0f, 0.0f};
        if (!rows_first) along(taps, filter, line, 3, 1.0f, sums);
        for (int tap = vertical.first; tap < vertical.last && rows_first; tap++)
            along(taps, filter, source + tap * down, across, vertical.of(filter, tap), sums);
        int rgb[3] = {rounded(sums[0]), rounded(sums[1]), rounded(sums[2])};
        change(entry + CHANGES, 0, rgb);
        if (first_part) {
            for (int c = 0; c < 3; c++) before[c * plane + (size_t)y * width + x] = rgb[c];
            own += grey(rgb);
        } else {
            end(entry, x, y, rgb, out, row + x, plane, values, size);
        }
    }
    if (!first_part) return;
    atomicAdd(&total, own);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd((unsigned long long*)(entry + SUM), (unsigned long long)total);
}

// What follows a contrast.
extern "C" __global__ void finish(int* table, const unsigned char* values, unsigned size, unsigned width, unsigned height,
                                  unsigned char* out) {
    const int* entry = table + (size_t)blockIdx.y * WORDS;
    int nth = contrast_of(entry);
    if (!entry[KIND] || nth == MOST) return;
    unsigned y = blockIdx.x;
    size_t plane = (size_t)width * height, row = (size_t)blockIdx.y * 3 * plane + (size_t)y * width;
    const unsigned char* before = address(entry + BEFORE);
    float mean = (float)((double)*(const unsigned long long*)(entry + SUM) / (double)plane);
    float factor = __int_as_float(entry[CHANGES + 2 * nth + 1]);
    for (unsigned x = threadIdx.x; x < width; x += blockDim.x) {
        int rgb[3];
        for (int c = 0; c < 3; c++) rgb[c] = blend(before[c * plane + (size_t)y * width + x], mean, factor);
        change(entry + CHANGES, nth + 1, rgb);
        end(entry, x, y, rgb, out, row + x, plane, values, size);
    }
}
