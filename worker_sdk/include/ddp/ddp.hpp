// Everything that a C++ worker needs, in one include.
#pragma once

#include <ddp/backend.h>
#include <ddp/cuda.hpp>
#include <ddp/distributed_sampler.hpp>
#include <ddp/error.hpp>
#include <ddp/export.hpp>
#include <ddp/process_group.hpp>
#include <ddp/store.hpp>
#include <ddp/types.hpp>
#include <ddp/version.hpp>
