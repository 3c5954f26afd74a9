/** Values of the server as the pages show them: loaded once, again on demand, or repeatedly. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { type Failure, failureOf } from './requests.ts'

export interface Loaded<T> {
  /** The newest value; null before the first one. A failure keeps the value before it. */
  readonly value: T | null
  readonly failure: Failure | null
  readonly isLoading: boolean
  reload(): void
}

interface Options {
  /** Milliseconds between loads while the page is visible; once without it. */
  readonly everyMs?: number
}

/**
 * Loads a value when the component is shown and whenever `key` changes. The function gets true
 * where a timer asks.
 */
export function useLoaded<T>(
  key: string,
  load: (background: boolean) => Promise<T>,
  { everyMs }: Options = {},
): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, 'reload'> & { readonly key: string }>({
    ...EMPTY,
    key,
  })
  const [round, setRound] = useState(0)
  const newest = useRef(load)
  newest.current = load
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new round loads again.
  useEffect(() => {
    let isCurrent = true
    const run = async (background: boolean): Promise<void> => {
      setState((before) => ({ ...(before.key === key ? before : EMPTY), key, isLoading: true }))
      try {
        const value = await newest.current(background)
        if (isCurrent) setState({ value, failure: null, isLoading: false, key })
      } catch (error) {
        const failure = failureOf(error)
        if (isCurrent) setState((before) => ({ ...before, failure, isLoading: false }))
      }
    }
    void run(false)
    const tick = (): void => {
      if (!document.hidden) void run(true)
    }
    const timer = everyMs === undefined ? undefined : setInterval(tick, everyMs)
    return () => {
      isCurrent = false
      clearInterval(timer)
    }
  }, [key, round, everyMs])
  const shown = state.key === key ? state : { ...EMPTY, key, isLoading: true }
  return { ...shown, reload: () => setRound((before) => before + 1) }
}

const EMPTY = { value: null, failure: null, isLoading: true } as const
