import { type FormEvent, useEffect, useRef, useState } from 'react'
import { useMutation, useQuery } from 'svc/react'
import { api, type Id } from '../_generated/api'

const LIMIT = 200n

interface Props {
  readonly channel: { readonly _id: Id<'channels'>; readonly name: string }
  readonly author: string
}

export function Messages({ channel, author }: Props) {
  const args = { channel: channel._id, limit: LIMIT }
  const messages = useQuery(api.messages.list, args)
  const [body, setBody] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const send = useMutation(api.messages.send)

  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const text = body.trim()
    if (text === '') return
    setBody('')
    setProblem(null)
    const sent = { channel: channel._id, author, body: text }
    try {
      // The message is shown at once, and removed if the server rejects it.
      const draft = { ...sent, ...draftFields() }
      await send(sent, {
        optimistic: (local) => {
          const before = local.get(api.messages.list, args)
          if (before) local.set(api.messages.list, args, [draft, ...before])
        },
      })
    } catch (error) {
      setProblem(`Not sent: ${error instanceof Error ? error.message : error}`)
      setBody((typed) => typed || text)
    }
  }

  return (
    <section aria-label={`#${channel.name}`}>
      <h2># {channel.name}</h2>
      {messages.status === 'loading' && <p className="notice">Loading</p>}
      {messages.status === 'failed' && <p role="alert">{messages.error.message}</p>}
      <List messages={messages.value ?? []} author={author} />
      {problem !== null && <p role="alert">{problem}</p>}
      <form onSubmit={submit}>
        <input
          aria-label={`Message to #${channel.name}`}
          placeholder={`Message to #${channel.name}`}
          value={body}
          maxLength={4000}
          autoComplete="off"
          onChange={(event) => setBody(event.target.value)}
        />
        <button type="submit" disabled={author === ''}>
          Send
        </button>
      </form>
    </section>
  )
}

/** Returns the fields that the server adds. The ID of a draft belongs to no document. */
function draftFields() {
  return {
    _id: `draft ${crypto.randomUUID()}` as Id<'messages'>,
    _createdAt: BigInt(Date.now()) * 1000n,
    _revision: 0n,
    kind: 'text' as const,
    likes: 0n,
  }
}

interface Message {
  readonly _id: Id<'messages'>
  /** Microseconds since the Unix epoch. */
  readonly _createdAt: bigint
  readonly author: string
  readonly body: string
  readonly kind: 'text' | 'system'
}

function List({ messages, author }: { messages: readonly Message[]; author: string }) {
  const list = useRef<HTMLOListElement>(null)
  const newest = messages[0]?._id
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new message scrolls.
  useEffect(() => {
    list.current?.scrollTo({ top: list.current.scrollHeight })
  }, [newest])
  return (
    <ol role="log" aria-label="Messages" ref={list}>
      {messages.toReversed().map((message) => (
        <li
          key={message._id}
          className={message.kind}
          data-own={message.author === author}
          data-draft={message._id.startsWith('draft ')}
        >
          <span className="author">{message.author}</span>
          <time dateTime={dateOf(message).toISOString()}>
            {dateOf(message).toLocaleTimeString([], { timeStyle: 'short' })}
          </time>
          <p>{message.body}</p>
        </li>
      ))}
    </ol>
  )
}

function dateOf({ _createdAt }: Message): Date {
  return new Date(Number(_createdAt / 1000n))
}
