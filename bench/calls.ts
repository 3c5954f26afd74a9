/** Function calls as they are sent over HTTP. */
import { randomBytes } from 'node:crypto'
import { IdFactory } from '../src/value/ids.ts'
import type { Target } from './installation.ts'

/** An argument in tagged JSON. */
export type Tagged = string

export const ids = new IdFactory({ nowMillis: () => Date.now(), randomBytes })

export const int64 = (value: number): Tagged => `{"type":"int64","value":"${value}"}`
export const string = (value: string): Tagged =>
  `{"type":"string","value":${JSON.stringify(value)}}`
export const id = (value: string): Tagged => `{"type":"typed_id","value":"${value}"}`
export const NULL: Tagged = '{"type":"null"}'

/** Texts of an item of ordinary length. */
export const TITLE = 'An item of ordinary length'
export const BODY =
  'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor. '.repeat(2)
export const TEXTS = { title: string(TITLE), body: string(BODY) }

export function queryBody(name: string, entries: Readonly<Record<string, Tagged>>): string {
  return envelope(name, entries, '')
}

/** Creates the body of a Mutation with a new Operation ID. */
export function mutationBody(name: string, entries: Readonly<Record<string, Tagged>>): string {
  return envelope(name, entries, `,"operationId":"${ids.make('opn')}"`)
}

function envelope(name: string, entries: Readonly<Record<string, Tagged>>, more: string): string {
  const list = Object.keys(entries)
    .sort()
    .map((key) => `{"key":"${key}","value":${entries[key]}}`)
  const head = `"version":1,"target":"channel:production","function":"${name}"`
  return `{${head},"arguments":{"type":"object","value":[${list.join(',')}]}${more}}`
}

// biome-ignore lint/suspicious/noExplicitAny: results of many shapes.
export type Json = any

/** Makes one call and returns its tagged result. */
export async function call(
  to: Target,
  path: '/v1/query' | '/v1/mutation' | '/v1/action' | '/bare',
  body: string,
) {
  const reply = await fetch(`http://127.0.0.1:${to.port}${path}`, {
    method: 'POST',
    headers: to.headers,
    body,
  })
  const text = await reply.text()
  if (!reply.ok) throw new Error(text)
  return JSON.parse(text).result as Json
}

/** Makes all the Mutations, `inFlight` at a time. Returns the tagged results in their order. */
export async function mutateAll(to: Target, bodies: readonly string[], inFlight: number) {
  const results: Json[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < bodies.length) {
      const at = next++
      results[at] = await call(to, '/v1/mutation', bodies[at]!)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
  return results
}
