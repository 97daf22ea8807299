// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "platform_comm/comm_context.h"
