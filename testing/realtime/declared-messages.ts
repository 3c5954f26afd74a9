/** Checks messages of the server against the declared ones. */
import { isFault } from '../../src/errors/fault.ts'
import type { Json } from '../../src/value/strict-json.ts'
import {
  AuthenticatedMessage,
  ExpiredMessage,
  ExpiringMessage,
  PatchMessage,
  PongMessage,
  RealtimeErrorMessage,
  type RealtimeVersion,
  ReconnectMessage,
  ResyncMessage,
  StateMessage,
  StatePartMessage,
  UnsubscribedMessage,
} from '../../src/wire/realtime.ts'

const DECLARED = [
  AuthenticatedMessage,
  StateMessage,
  StatePartMessage,
  PatchMessage,
  RealtimeErrorMessage,
  ResyncMessage,
  PongMessage,
  UnsubscribedMessage,
  ExpiringMessage,
  ExpiredMessage,
  ReconnectMessage,
]

/** Returns a function that checks whether a message belongs to that version of the protocol. */
export async function openMessageCheck(): Promise<
  (message: unknown, version?: RealtimeVersion) => boolean
> {
  const { read } = await import('../../src/wire/reading/read.ts')
  return (message, version = 1) =>
    (message as { readonly version: unknown }).version === version &&
    DECLARED.some((declared) => {
      try {
        read(declared as typeof PongMessage, message as Json, 'REQUEST_INVALID')
        return true
      } catch (error) {
        if (isFault(error, 'REQUEST_INVALID')) return false
        throw error
      }
    })
}
