/** A pause that an interrupt ends. */
import { Fault } from '../errors/fault.ts'

/** Waits. Throws CLIENT_INTERRUPTED when `signal` fires. */
export function pause(millis: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(new Fault('CLIENT_INTERRUPTED'))
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, millis)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}
