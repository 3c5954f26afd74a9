/** `svc/react`: React hooks for a client. */
import {
  createContext,
  createElement,
  type ReactNode,
  useCallback,
  useContext,
  useMemo,
  useRef,
  useSyncExternalStore,
} from 'react'
import type { CallOptions, Client, ConnectionState, MutationOptions } from '../client.ts'
import type { Observation } from '../live/live-queries.ts'
import type { Page, PagedState } from '../live/pages.ts'
import type { QueryState } from '../live/watched-query.ts'
import type {
  Action,
  CallParameters,
  ErrorOf,
  Mutation,
  PageArguments,
  Query,
} from '../references.ts'

const ClientContext = createContext<Client | null>(null)

/** Provides the client to the components below. */
export function SvcProvider(props: { readonly client: Client; readonly children?: ReactNode }) {
  return createElement(ClientContext.Provider, { value: props.client }, props.children)
}

export function useClient(): Client {
  const client = useContext(ClientContext)
  if (client === null) throw new TypeError('There is no SvcProvider above this component.')
  return client
}

/** Arguments with which a hook makes no call. */
export type Skip = 'skip'

const SKIPPED: Observation<never, never> = {
  current: () => LOADING,
  subscribe: () => () => undefined,
}
const LOADING = { status: 'loading', value: undefined, error: null } as const

/** Compares arguments by their content, so that components may write the object inline. */
function useStable<T>(value: T): T {
  const last = useRef(value)
  if (textOf(last.current) !== textOf(value)) last.current = value
  return last.current
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, item) => {
    if (typeof item === 'bigint') return `${item}n`
    return item instanceof Uint8Array ? [...item] : item
  })
}

function useObservation<R, F>(observation: Observation<R, F>): QueryState<R, F> {
  return useSyncExternalStore(observation.subscribe, observation.current, observation.current)
}

/**
 * Watches a Query and returns its state. With `suspense` it returns the value itself, suspends
 * without a value, and throws failures to the next error boundary.
 */
export function useQuery<A, R, E extends string>(
  reference: Query<A, R, E>,
  ...[args]: CallParameters<A | Skip, never>
): QueryState<R, ErrorOf<E>>
export function useQuery<A, R, E extends string>(
  reference: Query<A, R, E>,
  args: NoInfer<A>,
  options: { readonly suspense: true },
): R
export function useQuery<A, R, E extends string>(
  reference: Query<A, R, E>,
  ...[args, options]: [args?: A | Skip, options?: { readonly suspense: true }]
): QueryState<R, ErrorOf<E>> | R {
  const client = useClient()
  const stable = useStable(args)
  const observation = useMemo(
    () => (stable === 'skip' ? SKIPPED : client.observe(reference, stable ?? ({} as A))),
    [client, reference, stable],
  )
  const state = useObservation<R, ErrorOf<E>>(observation)
  if (options?.suspense !== true) return state
  if (state.status === 'loading') throw nextState(observation)
  if (state.status === 'failed') throw state.error
  return state.value
}

/** Resolves at the next change. React waits for it. */
function nextState(observation: Observation<unknown, unknown>): Promise<void> {
  return new Promise((resolve) => {
    const stop = observation.subscribe(() => {
      stop()
      resolve()
    })
  })
}

/** Returns a function that calls the Mutation; it stays the same between renderings. */
export function useMutation<A, R, E extends string>(
  reference: Mutation<A, R, E>,
): (...parameters: CallParameters<A, MutationOptions>) => Promise<R> {
  const client = useClient()
  return useCallback(
    (...parameters) => client.mutation(reference, ...parameters),
    [client, reference],
  )
}

/** Returns a function that calls the Action; it stays the same between renderings. */
export function useAction<A, R, E extends string>(
  reference: Action<A, R, E>,
): (...parameters: CallParameters<A, CallOptions>) => Promise<R> {
  const client = useClient()
  return useCallback(
    (...parameters) => client.action(reference, ...parameters),
    [client, reference],
  )
}

/** Watches a list in pages; `loadMore` loads the next one. */
export function usePaginatedQuery<A, I, E extends string>(
  reference: Query<A, Page<I>, E>,
  args: PageArguments<A>,
  { pageSize }: { readonly pageSize: number },
): PagedState<I, ErrorOf<E>> & { readonly loadMore: () => void } {
  const client = useClient()
  const stable = useStable(args)
  const paged = useMemo(() => {
    const observation = client.paginate(reference, stable, { pageSize })
    return {
      loadMore: () => observation.loadMore(),
      current: () => observation.current(),
      subscribe: (listener: () => void) => observation.subscribe(listener),
    }
  }, [client, reference, stable, pageSize])
  const state = useSyncExternalStore(paged.subscribe, paged.current, paged.current)
  return { ...state, loadMore: paged.loadMore }
}

/** Returns the state of the connection and the number of pending Mutations. */
export function useConnectionState(): ConnectionState {
  const { connection } = useClient()
  return useSyncExternalStore(connection.subscribe, connection.current, connection.current)
}
