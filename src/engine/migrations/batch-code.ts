/** Runs the code of a migration for one batch of documents, and reads the patches it returns. */
import type { StoredDocument } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import {
  type FunctionManifest,
  type MigrationManifest,
  undeclaredFunction,
} from '../../value/manifest.ts'
import { migrationFunction } from '../../value/migrations/migrations.ts'
import type { Value, ValueObject } from '../../value/values.ts'
import { documentText } from '../calls/document-text.ts'
import { returnedValue } from '../calls/returned-documents.ts'
import { type InvocationPort, invokeAttempt } from '../invocations/attempt.ts'
import { type Invocation, LostRunCounter } from '../invocations/invocation.ts'
import { conclude } from '../invocations/run-outcomes.ts'
import type { Transaction } from '../transactions/transaction.ts'

/** The fields that a document is patched with, as a runner sends them. */
export interface DocumentPatch {
  /** Parsed Stored JSON. */
  readonly fields: unknown
  readonly removed: readonly string[]
}

export interface BatchPatches {
  /** One for each document up to the one that the code threw for; null for no change. */
  readonly patches: readonly (DocumentPatch | null)[]
  /** The error that the code threw for the document after those; null for none. */
  readonly failure: string | null
}

const definitions = new WeakMap<MigrationManifest, FunctionManifest>()

/** Returns the code of a migration as an internal Query, the same object for each call. */
export function batchDefinition(migration: MigrationManifest): FunctionManifest {
  const known = definitions.get(migration)
  if (known !== undefined) return known
  const definition = undeclaredFunction(migrationFunction(migration.name), 'query')
  definitions.set(migration, definition)
  return definition
}

/**
 * Passes the documents to the code, as of this transaction. Throws the Fault of a run that failed
 * as a whole.
 */
export async function runBatchCode(
  port: InvocationPort,
  invocation: Invocation,
  transaction: Transaction,
  documents: readonly StoredDocument[],
): Promise<BatchPatches> {
  const argumentsText = `{"documents":[${documents.map(documentText).join()}]}`
  const lostRuns = new LostRunCounter()
  for (;;) {
    const input = { ...invocation, argumentsText }
    const { outcome, calls } = await invokeAttempt(port, input, transaction)
    if (outcome.kind === 'returned') {
      return patchesOf(returnedValue(outcome.result, outcome.documents), documents.length)
    }
    conclude(input, outcome, calls.failures, transaction.violations)
    lostRuns.add()
  }
}

/** Reads the result of a runner, which is not trusted. */
function patchesOf(result: Value, count: number): BatchPatches {
  const fields: ValueObject = result instanceof Map ? (result as ValueObject) : new Map()
  const [patches, failure] = [fields.get('patches'), fields.get('failure')]
  const isComplete = Array.isArray(patches) && patches.length === count
  if (!Array.isArray(patches) || patches.length > count) throw malformed()
  if (failure === null ? !isComplete : typeof failure !== 'string' || isComplete) throw malformed()
  return {
    patches: (patches as readonly Value[]).map(patchOf),
    failure: failure === null ? null : errorText(failure as string),
  }
}

function patchOf(text: Value): DocumentPatch | null {
  if (text === null) return null
  const [fields, removed] = parsed(text) as readonly unknown[]
  const isList = Array.isArray(removed) && removed.every((name) => typeof name === 'string')
  if (!isList) throw malformed()
  return { fields, removed }
}

/** Returns `name: message` of an ErrorReport. */
function errorText(text: string): string {
  const [name, message] = parsed(text) as readonly unknown[]
  return `${String(name)}: ${String(message)}`
}

function parsed(text: Value): unknown[] {
  try {
    const json: unknown = JSON.parse(text as string)
    if (Array.isArray(json)) return json
  } catch {
    // The runner did not send what the realm makes.
  }
  throw malformed()
}

function malformed(): Fault {
  return new Fault('FUNCTION_FAILED', { detail: 'the runner returned no patches' })
}
