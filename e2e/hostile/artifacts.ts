/**
 * Packages of a publisher that does not use the builder: scripts that were not compiled, with
 * manifests that match them or not. The comment of each says what stops it.
 */
import { HOOKS, PRELUDE } from '../../testing/hostile/payloads.ts'
import type { Outcome } from './outcomes.ts'

export interface HostileArtifact {
  readonly name: string
  /** The whole script. `define` creates the last statement of an ordinary one. */
  readonly source: (define: (handler: string, more?: string) => string) => string
  readonly sourceMap?: () => string
  /** `rejected`: the package is never validated, so it cannot be called. */
  readonly outcome: 'rejected' | Outcome
}

const ESCAPED = 'async () => (await found()) ? "escaped" : "stopped"'

const REJECTED: readonly HostileArtifact[] = [
  // Bound: two seconds of CPU while loading.
  { name: 'loops while it loads', source: () => 'for (;;);', outcome: 'rejected' },
  {
    name: 'loops in microtasks while it loads',
    source: (define) => `${define('() => 1')}; (async () => { for (;;) await null })()`,
    outcome: 'rejected',
  },
  // The bound on memory counts from the first byte.
  {
    name: 'takes memory while it loads',
    source: () => 'const kept = []; for (;;) kept.push({ kept })',
    outcome: 'rejected',
  },
  // A script is not a module and cannot import.
  {
    name: 'imports at the top',
    source: (define) => `import fs from 'node:fs'\n${define('() => fs')}`,
    outcome: 'rejected',
  },
  {
    name: 'reads its own location',
    source: (define) => define('() => import.meta.url'),
    outcome: 'rejected',
  },
  // A thrown value is read inside the sandbox, where its traps run.
  {
    name: 'throws a trap while it loads',
    source: () => 'throw new Proxy({}, { get() { for (;;); } })',
    outcome: 'rejected',
  },
  { name: 'defines nothing', source: () => 'void 0', outcome: 'rejected' },
  // The manifest is compared with the description of the code.
  {
    name: 'differs from its manifest',
    source: (define) => define('() => 1', 'kind: "mutation"'),
    outcome: 'rejected',
  },
  {
    name: 'describes itself endlessly',
    source: (define) => define('() => 1', 'get returns() { for (;;); }'),
    outcome: 'rejected',
  },
  // Bound: a frame has 16 MiB.
  {
    name: 'describes itself in twenty megabytes',
    source: (define) => define('() => 1', 'returns: { type: "x".repeat(2e7) }'),
    outcome: 'rejected',
  },
  {
    name: 'describes itself a million levels deep',
    source: (define) =>
      `let nest = {}; for (let i = 0; i < 1e6; i++) nest = { type: 'nullable', inner: nest }
       ${define('() => 1', 'returns: nest')}`,
    outcome: 'rejected',
  },
]

const MAPPINGS_BYTES = 24e6

const RUNNING: readonly HostileArtifact[] = [
  // No module can be loaded while a call runs, regardless of its specifier.
  {
    name: 'imports during a call',
    source: (define) => `const found = async () => {
      for (const name of ['node:fs', 'bun:ffi', 'bun', 'data:text/javascript,1', '/etc/passwd']) {
        try { if (await import(name)) return true } catch {}
      }
    }
    ${define(ESCAPED)}`,
    outcome: 'stopped',
  },
  // It closes the function that surrounds the script. The code behind it runs sloppy, same realm.
  {
    name: 'breaks out of its wrapper',
    source: (define) => `})() }), (function () {
      const around = (function () { return this })()
      const callers = []
      for (let at = arguments.callee, i = 0; at && i < 9; i++) callers.push(at = at.caller)
      globalThis.booty = [around.process, around.Bun, around.require, ...callers]
    })(), (function (__svc) { return (function () {
      const found = () => globalThis.booty.some((thing) => thing !== undefined && thing !== null)
      ${define(ESCAPED)}`,
    outcome: 'stopped',
  },
  // The host uses its own copies of what the script replaces before anything is frozen.
  {
    name: 'spies on the host from the start',
    source: (define) => `${PRELUDE}${HOOKS}
      ${define('(ctx, input) => (out(ctx, input, ctx.now(), ...caught) ? "out" : "stopped")')}`,
    outcome: 'stopped',
  },
  // The host does not join the parts of a frame with a method of the realm.
  {
    name: 'forges frames through Array.prototype.join',
    source: (define) => `Array.prototype.join = () => '0]],["returned",1,"forged",[false,false,0,['
      ${define('(ctx) => { ctx.log.info("x"); return "stopped" }')}`,
    outcome: 'stopped',
  },
  // It tries to end another call in the same way.
  {
    name: 'returns for another call',
    source: (define) => `const { push } = Array.prototype
      Array.prototype.push = function (...items) {
        for (const item of items) {
          if (typeof item?.id === 'number') try { item.id += 1 } catch {}
        }
        return Reflect.apply(push, this, items)
      }
      const set = Map.prototype.set
      Map.prototype.set = function (key, value) {
        if (typeof value?.id === 'number') value.id += 1
        return Reflect.apply(set, this, [key, value])
      }
      ${define('() => "for another"')}`,
    outcome: 'FUNCTION_FAILED',
  },
  // The source map of a Release is not trusted: decoding it costs a bounded amount.
  {
    name: 'has a source map that is a decompression bomb',
    source: (define) => define('() => { throw new Error("look it up") }'),
    sourceMap: () =>
      JSON.stringify({ version: 3, sources: ['a'], mappings: 'AAAA,;'.repeat(MAPPINGS_BYTES / 6) }),
    outcome: 'FUNCTION_FAILED',
  },
  {
    name: 'has a source map with names as long as pages',
    source: (define) => define('() => { throw new Error("look it up") }'),
    sourceMap: () =>
      JSON.stringify({
        version: 3,
        sources: [`\u001b[2J\n${'x'.repeat(4e6)}`],
        mappings: 'AAAA;'.repeat(99),
      }),
    outcome: 'FUNCTION_FAILED',
  },
]

export const ARTIFACTS: readonly HostileArtifact[] = [...REJECTED, ...RUNNING]
