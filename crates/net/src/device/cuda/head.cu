// What all kernels share, before each of their files; they are compiled at run time for each precision (REAL is float or double).
//
// Every parameter is eight bytes: addresses, whole numbers, doubles. An operand shorter than the output repeats. Sums
// are made in a fixed order, without atomic additions: a run gives the same digits every time.

typedef REAL real;
typedef long long L;
typedef unsigned int u32;
typedef unsigned long long u64;

#define NO_LABEL 0xffffffffu
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
#define EACH(i, n) for (L i = blockIdx.x * (L)blockDim.x + threadIdx.x; i < (n); i += (L)gridDim.x * blockDim.x)
#define KERNEL extern "C" __global__ void

// i modulo len; buffers hold fewer than 2^31 values
static __device__ __forceinline__ L rep(L i, L len) { return i < len ? i : (L)((u32)i % (u32)len); }

// Division by a number that the processor has prepared: d in the low half, then a multiplier, in two parameters.
struct Div {
    u32 d, m, s;
    __device__ __forceinline__ Div(u64 number, u64 magic) : d((u32)number), m((u32)magic), s((u32)(magic >> 32)) {}
    // n below 2^31
    __device__ __forceinline__ u32 of(u32 n) const { return d == 1 ? n : __umulhi(n, m) >> s; }
    __device__ __forceinline__ u32 split(u32 n, u32& rest) const {
        u32 q = of(n);
        rest = n - q * d;
        return q;
    }
};

// --- activations ----------------------------------------------------------------------------------------------------

// Quotients by numbers from 1 to 2: for float to two units in the last place.
static __device__ __forceinline__ float quotient(float a, float b) { return __fdividef(a, b); }
static __device__ __forceinline__ double quotient(double a, double b) { return a / b; }

static __device__ __forceinline__ void sigmoid3(real x, real& s, real& d, real& dd) {
    real e = exp(-fabs(x)), big = quotient((real)1, (real)1 + e);
    s = x < (real)0 ? e * big : big;
    d = e * big * big;
    dd = (x < (real)0 ? d : -d) * ((real)1 - e) * big;
}

enum { TANH, SIGMOID, SILU, SOFTPLUS, LEAKY_RELU, ELU, RELU, GELU_TANH, GELU };

// φ, φ', φ''
static __device__ __forceinline__ void activation(L kind, double p, real x, real& y, real& d, real& dd) {
    const real one = 1, two = 2;
    real s, ds, dds;
    switch (kind) {
    case TANH: {
        y = tanh(x);
        real e = exp(-two * fabs(x)), t = quotient(two, one + e);
        d = e * t * t;
        dd = -(y + y) * d;
        break;
    }
    case SIGMOID: sigmoid3(x, y, d, dd); break;
    case SILU:
        sigmoid3(x, s, ds, dds);
        y = x * s, d = s + x * ds, dd = ds + ds + x * dds;
        break;
    case SOFTPLUS: {
        sigmoid3(x, s, ds, dds);
        real rest = (real)log1p((double)exp(-fabs(x)));
        y = x < (real)0 ? rest : x + rest;
        d = s, dd = ds;
        break;
    }
    case LEAKY_RELU: {
        bool low = x <= (real)0;
        y = low ? (real)p * x : x, d = low ? (real)p : one, dd = 0;
        break;
    }
    case ELU: {
        real e = (real)p * exp(x), below = (real)p * (real)expm1((double)x);
        bool low = x <= (real)0;
        y = low ? below : x, d = low ? e : one, dd = low ? e : (real)0;
        break;
    }
    case RELU:
        y = x <= (real)0 ? (real)0 : x, d = x > (real)0 ? one : (real)0, dd = 0;
        break;
    case GELU_TANH: {
        real c = (real)0.7978845608028654, k = (real)0.044715, square = x * x;
        sigmoid3(two * c * (x + k * square * x), s, ds, dds);
        real slope = two * c * (one + (real)3 * k * square), bend = two * c * (real)6 * k * x;
        y = x * s, d = s + x * ds * slope, dd = two * ds * slope + x * (dds * slope * slope + ds * bend);
        break;
    }
    default: {
        real cdf = (real)normcdf((double)x), pdf = (real)0.3989422804014327 * exp((real)-0.5 * x * x);
        y = x * cdf, d = cdf + x * pdf, dd = pdf * (two - x * x);
    }
    }
}
