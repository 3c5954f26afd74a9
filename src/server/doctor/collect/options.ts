import type { ServerSettings } from '../../../settings/settings.ts'
import type { Keyring } from '../../../storage/keyring.ts'
import type { System } from '../../../system/system.ts'
import type { RootDescriptor } from '../../../value/product-root.ts'
import type { ProcessEnvironment } from '../../io.ts'
import type { ForwardedReading, Readings, SandboxReading } from '../readings.ts'
import type { readDocumentDatabase } from './databases.ts'
import type { Pause } from './files.ts'

/** The parts of a running server that readings come from. */
export interface Inside {
  readonly sandbox: SandboxReading
  readonly droppedRecords: number
  readonly forwarded: ForwardedReading
}

export interface CollectOptions {
  readonly settings: ServerSettings
  readonly environment: ProcessEnvironment
  readonly system: System
  /** Null outside of the server. */
  readonly inside: Inside | null
  /** Tries the sandbox where `inside` does not know it. */
  readonly readSandbox: () => Promise<SandboxReading>
}

export type LockState = Readings['lock']

export interface Found {
  readonly descriptor: RootDescriptor
  readonly keyring: Keyring
}

export type StoredDocuments = Awaited<ReturnType<typeof readDocumentDatabase>>['stored']

/** Lets calls of a running server be served between two steps. */
export const pause: Pause = () => new Promise((resolve) => setImmediate(resolve))
