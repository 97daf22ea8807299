// SPDX-License-Identifier: Apache-2.0
/** Options of the command by their long names, in camelCase or with dashes: { ranks: '2..8', inPlace: true, set: { n: 3 } }. */
export type Options = Record<string, string | number | boolean | string[] | number[] | Record<string, string | number>>;
export interface Answer { output: string; messages: string; status: number }
/** Runs a command of peal in memory of its own; files: contents by name. */
export function run(args: (string | number)[], files?: Record<string, string>): Promise<Answer>;
/** What `peal verify --json` says of a text or of a library kernel. */
export function verify(kernel: string, options?: Options): Promise<any>;
/** What `peal sim --json` says of a text or of a library kernel. */
export function simulate(kernel: string, options?: Options): Promise<any>;
