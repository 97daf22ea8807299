// SPDX-License-Identifier: Apache-2.0
#pragma once
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 6
