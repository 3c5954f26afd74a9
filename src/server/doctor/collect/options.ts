import type { ServerSettings } from '../../../settings/settings.ts'
import type { Keyring } from '../../../storage/keyring.ts'
import type { System } from '../../../system/system.ts'
import type { RootDescriptor } from '../../../value/product-root.ts'
import type { ProcessEnvironment } from '../../io.ts'
import type { ForwardedReading, Readings } from '../readings.ts'
import type { readDocumentDatabase } from './databases.ts'

/** The parts of a running server that readings come from. */
export interface Inside {
  readonly droppedRecords: number
  readonly forwarded: ForwardedReading
}

export interface CollectOptions {
  readonly settings: ServerSettings
  readonly environment: ProcessEnvironment
  readonly system: System
  /** Null outside of the server. */
  readonly inside: Inside | null
  readonly readSandbox: () => Promise<Readings['sandbox']>
}

export type LockState = Readings['lock']

export interface Found {
  readonly descriptor: RootDescriptor
  readonly keyring: Keyring
}

export type StoredDocuments = Awaited<ReturnType<typeof readDocumentDatabase>>['stored']
