/** Fills an Environment without documents by running the Mutations that a file lists. */
import type { Engine } from '../../engine/engine.ts'
import type { Release } from '../../engine/releases/executable-release.ts'
import { Fault, isFault, reasonText } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import { plainToArguments } from '../../value/plain.ts'
import { parseWrittenJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { ValueObject } from '../../value/values.ts'
import { SeedFile } from '../../wire/files/seeds.ts'
import { parse } from '../../wire/reading/read.ts'

/** Parses a seed file. Throws CLIENT_FILE_FAILED with the rule that the content breaks. */
export function parseSeeds(bytes: Uint8Array): SeedFile {
  try {
    return parse(SeedFile, parseWrittenJson(bytes))
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    const form = '[{ "function": "channels.create", "arguments": { "name": "general" } }]'
    const detail = `The seed file must be ${error.rule} (${error.path}), such as ${form}.`
    throw new Fault('CLIENT_FILE_FAILED', { detail, cause: error })
  }
}

export interface SeedPorts {
  readonly engine: Pick<Engine, 'mutation' | 'prepare'>
  readonly system: Pick<System, 'ids'>
}

/** Returns whether no table of the Release has a document. */
export async function hasNoDocuments({ engine }: SeedPorts, release: Release): Promise<boolean> {
  const { tables, scan } = await engine.prepare(release)
  for (const { creationOrder } of tables.values()) {
    for await (const _ of scan(creationOrder)) return false
  }
  return true
}

/** Runs the Mutations in order. Throws SEED_FAILED with the call that failed and why. */
export async function runSeeds(
  { engine, system }: SeedPorts,
  release: Release,
  seeds: SeedFile,
): Promise<void> {
  for (const [i, seed] of seeds.entries()) {
    const definition = release.functions.get(seed.function)
    const which = `Call ${i + 1}, ${seed.function}`
    if (definition?.kind !== 'mutation') throw failed(`${which}: there is no such Mutation.`)
    if (definition.auth !== 'none' && definition.auth !== 'optional') {
      throw failed(`${which}: it needs an identity. Write an internalMutation for seeds.`)
    }
    const { ids } = system
    const context = { requestId: ids.make('req'), invocationId: ids.make('ivc') }
    const operation = { operationId: ids.make('opn'), target: 'seed', caller: 'seed' }
    try {
      const given = plainToArguments(seed.arguments ?? {}, definition.arguments) as ValueObject
      const request = { release, definition, arguments: given, principal: null, context }
      await engine.mutation({ ...request, ...operation })
    } catch (error) {
      throw failed(`${which}: ${failureOf(error)}`, error)
    }
  }
}

function failureOf(error: unknown): string {
  if (error instanceof ValidationError) return `expected ${error.rule} (${error.path}).`
  if (!isFault(error)) return 'it failed.'
  return `${error.code} ${reasonText(error) ?? error.message}`
}

function failed(detail: string, cause?: unknown): Fault {
  return new Fault('SEED_FAILED', { detail, cause })
}
