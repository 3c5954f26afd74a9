import { type FormEvent, useState } from 'react'
import { isCallError } from 'svc/client'
import { useConnectionState, useMutation, useQuery } from 'svc/react'
import { api, type Id } from '../_generated/api'
import { Messages } from './messages'

export function App() {
  const [author, setAuthor] = useAuthor()
  const [chosen, choose] = useState<Id<'channels'> | null>(null)
  const channels = useQuery(api.channels.list)
  const current = channels.value?.find(({ _id }) => _id === chosen) ?? channels.value?.[0]
  return (
    <>
      <header>
        <h1>Chat</h1>
        <Connection />
        <label>
          Your name
          <input
            value={author}
            maxLength={64}
            onChange={(event) => setAuthor(event.target.value)}
          />
        </label>
      </header>
      <nav aria-label="Channels">
        <ul>
          {channels.value?.map(({ _id, name }) => (
            <li key={_id}>
              <button
                type="button"
                aria-current={_id === current?._id ? 'page' : undefined}
                onClick={() => choose(_id)}
              >
                # {name}
              </button>
            </li>
          ))}
        </ul>
        <NewChannel author={author} onCreated={choose} />
      </nav>
      <main>
        {channels.status === 'loading' && <p className="notice">Loading</p>}
        {channels.status === 'failed' && <p role="alert">{channels.error.message}</p>}
        {channels.status === 'ready' && current === undefined && (
          <p className="notice">There is no channel yet. Name the first one.</p>
        )}
        {current && <Messages key={current._id} channel={current} author={author} />}
      </main>
    </>
  )
}

/** Shows whether the page is up to date, and how much it has still to send. */
function Connection() {
  const { status, pendingMutations, error } = useConnectionState()
  const texts = {
    idle: 'Not connected',
    connecting: 'Connecting',
    connected: 'Connected',
    waiting: 'No connection. Trying again.',
    failed: error?.message ?? 'No connection',
  }
  return (
    <p role="status" className="connection" data-status={status}>
      {texts[status]}
      {pendingMutations > 0 && ` (sending ${pendingMutations})`}
    </p>
  )
}

function NewChannel(props: { author: string; onCreated: (channel: Id<'channels'>) => void }) {
  const [name, setName] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const create = useMutation(api.channels.create)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setProblem(null)
    try {
      props.onCreated(await create({ name: name.trim(), author: props.author }))
      setName('')
    } catch (error) {
      const isTaken = isCallError(error) && error.code === 'APP_CHANNEL_EXISTS'
      setProblem(isTaken ? 'This channel exists already.' : String(error))
    }
  }
  return (
    <form onSubmit={submit}>
      <label>
        New channel
        <input
          value={name}
          maxLength={64}
          required
          pattern=".*\S.*"
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <button type="submit" disabled={props.author === ''}>
        Create
      </button>
      {problem !== null && <p role="alert">{problem}</p>}
    </form>
  )
}

/** Keeps the name for this window, so that two windows can be two people. */
function useAuthor() {
  const [author, setAuthor] = useState(
    () => sessionStorage.getItem('author') ?? `Guest ${100 + Math.floor(Math.random() * 900)}`,
  )
  const change = (name: string) => {
    sessionStorage.setItem('author', name)
    setAuthor(name)
  }
  return [author, change] as const
}
