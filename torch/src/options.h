// SPDX-License-Identifier: Apache-2.0
// What init_process_group and new_group may say about a group of the backend "peal": pg_options=peal_torch.Options(...).
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
#ifdef C10D_BACKEND_HAS_RECONFIGURE // the versions that copy options when a group is split
    c10::intrusive_ptr<Base::Options> clone() const override
    {
        return c10::make_intrusive<GroupOptions>(*this);
    }
#endif
    // Algorithms by collective, as PEAL_ALGO names them: {"allreduce": "ring"}.
    std::map<std::string, std::string> algorithms;
};

// How a rank joins its group.
struct Joining {
    StorePtr store;
    int rank = 0, size = 1;
    Milliseconds timeout{0};
    std::vector<int64_t> global_ranks; // of the group's ranks; empty: they are the same
    c10::intrusive_ptr<GroupOptions> options;
};

} // namespace peal
