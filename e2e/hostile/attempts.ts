/** Helpers of attempts: Functions without cached results, and outcomes as text. */
import { mutation, query, v } from 'svc'

const clients = ['confidential'] as const
const fresh = { nonce: v.int64() }

export const hostileQuery = (handler: (ctx: QueryCtx, input: { nonce: bigint }) => unknown) =>
  query({ clients, arguments: fresh, returns: v.any(), handler })

export const hostileMutation = (handler: (ctx: MutationCtx, input: { nonce: bigint }) => unknown) =>
  mutation({ clients, arguments: fresh, returns: v.any(), handler })

/** Returns `stopped` if `work` throws or returns nothing, otherwise the text of its result. */
export function attempt(work: () => unknown): string {
  try {
    const booty = work()
    return isNothing(booty) ? 'stopped' : `escaped: ${String(booty).slice(0, 200)}`
  } catch {
    return 'stopped'
  }
}

export async function attemptLater(work: () => Promise<unknown>): Promise<string> {
  try {
    const booty = await work()
    return isNothing(booty) ? 'stopped' : `escaped: ${String(booty).slice(0, 200)}`
  } catch {
    return 'stopped'
  }
}

function isNothing(booty: unknown): boolean {
  return booty === undefined || booty === null || booty === false
}

/** Tries to compile code in the realm of each thing or of one of its prototypes. */
export function outOf(...things: unknown[]): unknown {
  const source = 'return typeof process === "object" || typeof Bun === "object"'
  for (const thing of things) {
    let at = thing as { constructor?: { constructor?: (text: string) => () => unknown } } | null
    for (let level = 0; at !== null && at !== undefined && level < 8; level++) {
      try {
        if (at.constructor?.constructor?.(source)?.() === true) return 'made code outside'
      } catch {}
      at = Object.getPrototypeOf(Object(at))
    }
  }
  return null
}

export function thrownBy(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}

/** Returns a global by name, hidden from the checks of the builder. */
export function globalNamed(name: string): unknown {
  return (globalThis as Record<string, unknown>)[name]
}

export interface Documents {
  get(id: string): Promise<unknown>
  insert(table: string, fields: unknown): Promise<string>
  table(name: string): { scan(): { take(count: number): Promise<unknown[]> } }
}

export interface QueryCtx {
  readonly db: Documents
  readonly log: { info(message: unknown, data?: unknown): void }
  fail(code: string): never
  now(): bigint
}

export type MutationCtx = QueryCtx
