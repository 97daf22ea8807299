; SPDX-License-Identifier: Apache-2.0
(kernel) @local.scope
(block) @local.scope
(parameter name: (name) @local.definition)
(declaration name: (name) @local.definition)
(cells (name) @local.definition)
(let name: (name) @local.definition)
(for name: (name) @local.definition)
(lane name: (name) @local.definition)
(name) @local.reference
