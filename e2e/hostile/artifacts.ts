/**
 * Packages whose publisher uses no builder: scripts that no compiler looked at, with manifests that
 * fit them or do not. Each says what it tries and what stops it.
 */
import { HOOKS, PRELUDE } from '../../build/testing/hostile/payloads.ts'
import type { Outcome } from './outcomes.ts'

export interface HostileArtifact {
  readonly name: string
  /** The whole script; `define` is what a well-behaved one ends with. */
  readonly source: (define: (handler: string, more?: string) => string) => string
  readonly sourceMap?: () => string
  /** `refused`: it is never validated, so nobody can call it. */
  readonly outcome: 'refused' | Outcome
}

const ESCAPED = 'async () => (await found()) ? "escaped" : "stopped"'

const REFUSED: readonly HostileArtifact[] = [
  // The bound on loading, two seconds of CPU.
  { name: 'loops while it loads', source: () => 'for (;;);', outcome: 'refused' },
  {
    name: 'loops in microtasks while it loads',
    source: (define) => `${define('() => 1')}; (async () => { for (;;) await null })()`,
    outcome: 'refused',
  },
  // The bound on memory counts from the first byte.
  {
    name: 'takes memory while it loads',
    source: () => 'const kept = []; for (;;) kept.push({ kept })',
    outcome: 'refused',
  },
  // A script is no module: it has nothing to import from.
  {
    name: 'imports at the top',
    source: (define) => `import fs from 'node:fs'\n${define('() => fs')}`,
    outcome: 'refused',
  },
  {
    name: 'asks where it lies',
    source: (define) => define('() => import.meta.url'),
    outcome: 'refused',
  },
  // Reading what was thrown runs code of its author, inside.
  {
    name: 'throws a mine while it loads',
    source: () => 'throw new Proxy({}, { get() { for (;;); } })',
    outcome: 'refused',
  },
  { name: 'defines nothing', source: () => 'void 0', outcome: 'refused' },
  // The manifest is compared with what the code says of itself.
  {
    name: 'says something else than its manifest',
    source: (define) => define('() => 1', 'kind: "mutation"'),
    outcome: 'refused',
  },
  {
    name: 'describes itself without end',
    source: (define) => define('() => 1', 'get returns() { for (;;); }'),
    outcome: 'refused',
  },
  // A frame has 16 MiB.
  {
    name: 'describes itself in twenty megabytes',
    source: (define) => define('() => 1', 'returns: { type: "x".repeat(2e7) }'),
    outcome: 'refused',
  },
  {
    name: 'describes itself a million levels deep',
    source: (define) =>
      `let nest = {}; for (let i = 0; i < 1e6; i++) nest = { type: 'nullable', inner: nest }
       ${define('() => 1', 'returns: nest')}`,
    outcome: 'refused',
  },
]

const MAPPINGS_BYTES = 24e6

const RUNNING: readonly HostileArtifact[] = [
  // Nothing is loaded while a call runs, whatever the specifier.
  {
    name: 'imports later',
    source: (define) => `const found = async () => {
      for (const name of ['node:fs', 'bun:ffi', 'bun', 'data:text/javascript,1', '/etc/passwd']) {
        try { if (await import(name)) return true } catch {}
      }
    }
    ${define(ESCAPED)}`,
    outcome: 'stopped',
  },
  // The end of the function that the script stands in: behind it is the same realm, sloppy.
  {
    name: 'breaks out of its wrapper',
    source: (define) => `})() }), (function () {
      const around = (function () { return this })()
      const callers = []
      for (let at = arguments.callee, i = 0; at && i < 9; i++) callers.push(at = at.caller)
      globalThis.booty = [around.process, around.Bun, around.require, ...callers]
    })(), (function (__svc) { return (function () {
      const found = () => globalThis.booty.some((it) => it !== undefined && it !== null)
      ${define(ESCAPED)}`,
    outcome: 'stopped',
  },
  // Hooks on everything that the host may use, before anything is frozen: it kept its own.
  {
    name: 'spies on the host from the start',
    source: (define) => `${PRELUDE}${HOOKS}
      ${define('(ctx, input) => (out(ctx, input, ctx.now(), ...caught) ? "out" : "stopped")')}`,
    outcome: 'stopped',
  },
  // Text between the parts of a frame: the host joins none by a method of the realm.
  {
    name: 'forges frames through Array.prototype.join',
    source: (define) => `Array.prototype.join = () => '0]],["returned",1,"forged",[false,false,0,['
      ${define('(ctx) => { ctx.log.info("x"); return "stopped" }')}`,
    outcome: 'stopped',
  },
  // A second answer behind the first one, in the same way.
  {
    name: 'answers for another call',
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
  // The map of a Release is its publisher's word: decoding it costs no more than it is worth.
  {
    name: 'brings a source map that is a bomb',
    source: (define) => define('() => { throw new Error("look it up") }'),
    sourceMap: () =>
      JSON.stringify({ version: 3, sources: ['a'], mappings: 'AAAA,;'.repeat(MAPPINGS_BYTES / 6) }),
    outcome: 'FUNCTION_FAILED',
  },
  {
    name: 'brings a source map of names that are pages',
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

export const ARTIFACTS: readonly HostileArtifact[] = [...REFUSED, ...RUNNING]
