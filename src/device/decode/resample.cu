// Makes the images of a batch from decoded pictures: part, resize, flip, values, planes.
//
// One block makes one row of one image. It resizes the columns of the part to that row, rounds to bytes, and then
// resizes along the row: the order and the rounding of the crate fast_image_resize. The weights are its weights, without
// their rounding to 16 bits.

// The words of an entry: those of `PictureRow`, then the address (two words) and the bytes of a line of the picture.
enum { IS_JPEG = 0, START = 4, ACROSS = 6, DOWN = 8, PART = 10, RESIZED = 12, FILTER = 14, WINDOW = 15, MIRROR = 17,
       ADDRESS = 21, PITCH = 23, WORDS = 24 };

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

__device__ void put(unsigned char* out, size_t at, const unsigned char* values, unsigned size, int channel, unsigned byte) {
    size_t value = channel * 256 + byte;
    if (size == 1) out[at] = values[value];
    else if (size == 2) ((unsigned short*)out)[at] = ((const unsigned short*)values)[value];
    else ((unsigned*)out)[at] = ((const unsigned*)values)[value];
}

extern "C" __global__ void resample(const unsigned* table, const unsigned char* values, unsigned size, unsigned width,
                                    unsigned height, unsigned char* out) {
    extern __shared__ unsigned char line[]; // the part's columns, three bytes each
    const int* entry = (const int*)table + (size_t)blockIdx.y * WORDS;
    const unsigned char* source =
        (const unsigned char*)((unsigned long long)(unsigned)entry[ADDRESS] | (unsigned long long)(unsigned)entry[ADDRESS + 1] << 32);
    unsigned y = blockIdx.x;
    size_t plane = (size_t)width * height, row = (size_t)blockIdx.y * 3 * plane + (size_t)y * width;

    if (!entry[IS_JPEG]) {
        for (unsigned x = threadIdx.x; x < width; x += blockDim.x)
            for (int c = 0; c < 3; c++) put(out, row + c * plane + x, values, size, c, source[c * plane + (size_t)y * width + x]);
        return;
    }

    int filter = entry[FILTER], columns = entry[PART];
    long long pitch = entry[PITCH];
    long long across = entry[ACROSS + 1] * pitch + 3 * entry[ACROSS], down = entry[DOWN + 1] * pitch + 3 * entry[DOWN];
    source += entry[START + 1] * pitch + 3 * entry[START];
    Taps vertical(filter, entry[WINDOW + 1] + (int)y * entry[MIRROR + 1], entry[PART + 1], entry[RESIZED + 1]);
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        float sums[3] = {0.0f, 0.0f, 0.0f};
        for (int tap = vertical.first; tap < vertical.last; tap++) {
            const unsigned char* pixel = source + column * across + tap * down;
            float share = vertical.of(filter, tap);
            for (int c = 0; c < 3; c++) sums[c] += share * pixel[c];
        }
        for (int c = 0; c < 3; c++) line[3 * column + c] = rounded(sums[c]);
    }
    __syncthreads();
    for (unsigned x = threadIdx.x; x < width; x += blockDim.x) {
        Taps taps(filter, entry[WINDOW] + (int)x * entry[MIRROR], columns, entry[RESIZED]);
        float sums[3] = {0.0f, 0.0f, 0.0f};
        for (int tap = taps.first; tap < taps.last; tap++) {
            float share = taps.of(filter, tap);
            for (int c = 0; c < 3; c++) sums[c] += share * line[3 * tap + c];
        }
        for (int c = 0; c < 3; c++) put(out, row + c * plane + x, values, size, c, rounded(sums[c]));
    }
}
