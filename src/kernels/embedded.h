// Source files of this room as strings. cmake/embed.cmake writes their contents into embedded.cc when the library is built.
#pragma once

namespace weft::embedded {

extern const char* const kCuda;       // cuda-inl.h
extern const char* const kScalar;     // scalar-inl.h
extern const char* const kVmath;      // vmath-inl.h
extern const char* const kBodies;     // bodies-inl.h
extern const char* const kPointwise;  // pointwise-inl.h

}  // namespace weft::embedded
