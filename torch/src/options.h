// SPDX-License-Identifier: Apache-2.0
// Options of a group, pg_options=peal_torch.Options(...), and the arguments with which torch makes one.
#pragma once

#include "base.h"

#include <map>
#include <string>

namespace peal {

struct GroupOptions : Base::Options {
    explicit GroupOptions(std::map<std::string, std::string> wanted = {})
        : Base::Options("peal"), algorithms(std::move(wanted))
    {
    }
#ifdef C10D_BACKEND_HAS_RECONFIGURE // versions that copy the options when they split a group
    c10::intrusive_ptr<Base::Options> clone() const override
    {
        return c10::make_intrusive<GroupOptions>(*this);
    }
#endif
    // Algorithms by collective, with the names of PEAL_ALGO: {"allreduce": "ring"}.
    std::map<std::string, std::string> algorithms;
};

// What a rank needs to join its group.
struct Joining {
    StorePtr store;
    int rank = 0, size = 1;
    Milliseconds timeout{0};
    std::vector<int64_t> global_ranks; // by rank in the group; empty: global ranks are the same
    c10::intrusive_ptr<GroupOptions> options;
};

} // namespace peal
