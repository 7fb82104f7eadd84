// Boost.Process v2 with the Boost headers that its 1.81 leans on without including them.
#pragma once

// The last one needs those before it.
// clang-format off
#include <boost/optional.hpp>
#include <boost/type_traits/decay.hpp>
#include <boost/type_traits/is_convertible.hpp>
#include <boost/process/v2/process.hpp>
// clang-format on
