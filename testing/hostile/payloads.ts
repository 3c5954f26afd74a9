/**
 * Ways in which code of a Workspace might reach an object of the outer realm. Each payload is an
 * expression in a handler; it is true if the escape succeeded.
 */

/** Helpers of the payloads: `out` tries to compile code in the realm of each of its arguments. */
export const PRELUDE = `
  const source = 'return typeof process === "object" || typeof Bun === "object"'
  const made = (maker) => {
    try { return maker(source)() === true } catch { return false }
  }
  const out = (...things) => things.some((thing) => {
    for (let at = thing, i = 0; at !== null && at !== undefined && i < 8; i++) {
      try { if (made(at.constructor) || made(at.constructor.constructor)) return true } catch {}
      try { if (typeof at === 'function' && made(at)) return true } catch {}
      at = Object.getPrototypeOf(Object(at))
    }
    return false
  })
  const thrown = (work) => { try { work() } catch (error) { return error } }
  const rejected = (promise) => promise.then(() => null, (error) => error)
  const atTheEdge = (work) => {
    const errors = []
    const down = (n) => {
      try { down(n + 1) } catch (error) { errors.push(error); errors.push(thrown(work)) }
    }
    for (let skew = 0; skew < 40; skew++) ((pad) => down(0))(new Array(skew))
    return errors.filter(Boolean)
  }
  const caught = []
  const spy = (owner, name) => {
    const real = owner[name]
    owner[name] = function (...rest) {
      caught.push(this, ...rest)
      return Reflect.apply(real, this, rest)
    }
  }
  const absent = (...names) => names.every((name) => !(name in globalThis))
`

/** Hooks that code may set while it loads, before the shared objects are frozen. */
export const HOOKS = `
  spy(Promise.prototype, 'then'); spy(Map.prototype, 'set'); spy(Map.prototype, 'get')
  spy(WeakMap.prototype, 'get'); spy(WeakMap.prototype, 'set'); spy(Array.prototype, 'map')
  spy(Array.prototype, 'join'); spy(String.prototype, 'split'); spy(Function.prototype, 'call')
  spy(Function.prototype, 'apply'); spy(Reflect, 'construct'); spy(Object, 'keys')
  const names = ['call', 'resolve', 'error', 'id', 'db', 'emit', 'pending', 'random', 'root']
  for (const name of [...names, 'ends', 'runAs', 'isOwed', 'unhandledRejections', 'fetch']) {
    Object.defineProperty(Object.prototype, name, {
      get() { caught.push(this) },
      set(value) {
        caught.push(this, value)
        const own = { value, writable: true, configurable: true, enumerable: true }
        Object.defineProperty(this, name, own)
      },
      configurable: true,
    })
  }
`

/** The payloads, by name. */
export const PAYLOADS: Readonly<Record<string, string>> = {
  evaluates: 'out(thrown(() => eval("1")), thrown(() => new Function("1")))',
  makesAsync: 'out(async () => {}, function* () {}, async function* () {})',
  takesContext: 'out(ctx, ctx.db, ctx.log, ctx.log.info, ctx.fail, ctx.now, ctx.auth)',
  takesArguments: 'out(input, input.a, input.a.b)',
  takesDocument:
    'await ctx.db.get("x").then((document) => out(document, document._id, document._revision))',
  takesPromise: 'out(ctx.db.get("x"), await ctx.db.get("x"))',
  takesRejection: 'out(await rejected(ctx.db.get("refuse")))',
  takesTable: 'out(ctx.db.table("t"), ctx.db.table("t").scan())',
  takesRange: 'out(await ctx.db.table("t").scan().collect())',
  takesBuilder: 'ctx.db.table("t").index("i", (q) => { if (out(q)) ctx.fail("OUT") }) && false',
  takesErrors: 'out(thrown(() => ctx.db.table("none")), thrown(() => ctx.fail("none")))',
  imports: `out(((promise) => (promise.catch(() => {}), promise))(import("node:fs")),
    await rejected(import("node:fs")))`,
  importsRuntime: 'out(await rejected(import("bun:ffi")))',
  importsText: 'out(await rejected(import("data:text/javascript,1")))',
  walksGlobals: 'Object.getOwnPropertyNames(globalThis).some((name) => out(globalThis[name]))',
  walksPrototypes: 'out(globalThis, Object.getPrototypeOf(globalThis))',
  overflowsText: 'out(...atTheEdge(() => new TextEncoder().encode("x")))',
  overflowsUrl: 'out(...atTheEdge(() => new URL("http://x/")))',
  overflowsBase64: 'out(...atTheEdge(() => atob("eA==")))',
  overflowsLog: 'out(...atTheEdge(() => console.log({ x: 1 })))',
  overflowsRandom: 'out(...atTheEdge(() => crypto.randomUUID()))',
  overflowsSend: 'out(...atTheEdge(() => { ctx.db.get("x") }).slice(0, 20)) || ctx.fail("DONE")',
  breaksDecoder: `out(
    thrown(() => new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([255]))),
    thrown(() => new TextDecoder().decode(new Proxy(new Uint8Array(4), {}))))`,
  breaksEncoder: `out(
    thrown(() => new TextEncoder().encodeInto("x", new Proxy(new Uint8Array(4), {}))))`,
  breaksUrl: 'out(thrown(() => new URL("::")), thrown(() => new URL({ toString() { throw 0 } })))',
  breaksBase64: 'out(thrown(() => atob("!")), thrown(() => btoa("\\u0100")))',
  breaksClone: 'out(thrown(() => structuredClone(() => {})), structuredClone({ a: new Map() }))',
  takesConsole: 'out(console, console.log, crypto, crypto.randomUUID)',
  takesParameters: 'out(new URL("http://x/").searchParams, new URLSearchParams("a=b").entries())',
  hooksStacks: `(() => {
    const sites = []
    try { Error.prepareStackTrace = (_, found) => { sites.push(...found); return "" } } catch {}
    void new Error("x").stack
    return out(...sites.flatMap((site) => [site, site.getThis?.(), site.getFunction?.()]))
  })()`,
  capturesStacks:
    '(() => { const held = {}; Error.captureStackTrace(held); return out(held.stack) })()',
  looksAtCallers: `(() => {
    function inner() { return [thrown(() => inner.caller), thrown(() => inner.arguments)] }
    return out(...inner())
  })()`,
  revives: `(() => {
    let held
    JSON.parse('{"a":1}', function () { held = this; return 1 })
    return out(held)
  })()`,
  assimilates: `await new Promise((done) => {
    Promise.resolve({ then(...hooks) { done(out(...hooks)) } })
  })`,
  sharesMemory: '!absent("SharedArrayBuffer", "Atomics", "WebAssembly", "ShadowRealm")',
  watchesMemory: '!absent("WeakRef", "FinalizationRegistry")',
  timesItself: '!absent("setTimeout", "setInterval", "setImmediate", "performance", "fetch")',
  findsHost: '!absent("process", "Bun", "require", "module", "Loader", "global", "self")',
  spiesInternals: `(await ctx.db.get("x"), console.log("x"), new URL("http://x/?a=b"),
    out(...caught))`,
}
