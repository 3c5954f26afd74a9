/** Requests of the page of the console that no button makes, sent by its own scripts. */
import type { Tab } from '../../testing/browsers/chromium.ts'
import type { Json } from '../application.ts'

export interface Answer {
  readonly status: number
  readonly body: Json
}

const ANSWER = `.then(async (response) => {
  const text = await response.text()
  const isJson = response.headers.get('content-type') === 'application/json'
  return { status: response.status, body: isJson ? JSON.parse(text) : text }
})`

/** Calls an operation by its name. */
export function callOf(tab: Tab, name: string, parts: object): Promise<Answer> {
  return postOf(tab, `call/${name}`, parts)
}

/** Sends JSON to a path of the console. */
export function postOf(tab: Tab, path: string, parts: object): Promise<Answer> {
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(parts),
  }
  return tab.evaluate(`fetch(${JSON.stringify(path)}, ${JSON.stringify(init)})${ANSWER}`)
}

/** Sends a text as the file of an upload. */
export function uploadOf(tab: Tab, name: string, parts: object, text: string): Promise<Answer> {
  const call = Buffer.from(JSON.stringify(parts)).toString('base64url')
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream', 'x-console-call': call },
    body: text,
  }
  return tab.evaluate(`fetch('upload/${name}', ${JSON.stringify(init)})${ANSWER}`)
}
