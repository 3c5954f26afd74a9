/** What a login needs of a browser; it approves whatever it is asked, as a person would. */
export interface Browser {
  /** Opens the address and sends each form that it meets; answers the page without one. */
  visit(url: string): Promise<Page>
  close(): Promise<void>
}

export interface Page {
  readonly url: string
  readonly title: string
  /** Titles of the forms on the way. */
  readonly forms: readonly string[]
}

const HOPS_MAX = 20

/** A page without an address to go on to, or the first address that begins with `end`. */
interface Stop {
  readonly url: string
  readonly html: string
}

/** Keeps cookies and follows redirects; runs no script and draws nothing. */
export function httpBrowser({ end }: { readonly end?: string } = {}): Browser {
  const cookies = new Map<string, string>()
  const ask = async (url: string, method: 'GET' | 'POST'): Promise<Stop> => {
    let next = { url, method }
    for (let hop = 0; hop < HOPS_MAX; hop++) {
      if (end !== undefined && next.url.startsWith(end)) return { url: next.url, html: '' }
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const response = await fetch(next.url, {
        method: next.method,
        redirect: 'manual',
        headers: { cookie },
      })
      const html = await response.text()
      for (const line of response.headers.getSetCookie()) {
        const [name = '', value = ''] = line.split(';')[0]!.split('=')
        cookies.set(name, value)
      }
      const location = response.headers.get('location')
      if (location === null) return { url: next.url, html }
      next = { url: new URL(location, next.url).href, method: 'GET' }
    }
    throw new Error('too many redirects')
  }
  return {
    visit: async (start) => {
      const forms: string[] = []
      let { url, html } = await ask(start, 'GET')
      while (html.includes('<form method="post">')) {
        forms.push(titleOf(html))
        ;({ url, html } = await ask(url, 'POST'))
      }
      return { url, title: titleOf(html), forms }
    },
    close: async () => {},
  }
}

function titleOf(html: string): string {
  return /<title>([^<]*)<\/title>/.exec(html)?.[1] ?? ''
}
