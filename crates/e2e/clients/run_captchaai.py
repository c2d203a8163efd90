"""captchaai, the official client of CaptchaAI: httpx, classic, JSON. It asks for its threads before anything else, and it
has no option for how long it waits before it first asks: up to 16 seconds."""

import driver

order = driver.prepare()

import captchaai  # noqa: E402

driver.watch_httpx()


def call(client, order):
    page, key = order.page, order.site_key
    through = {"proxy": order.proxy, "proxytype": order.proxy_type}
    match order.what:
        case "image":
            return client.normal(order.image)
        case "image_text":
            return client.normal(order.image_text, numeric=1, min_len=4, max_len=8)
        case "grid":
            return client.grid(order.image, "traffic lights", "3x3")
        case "bls":
            return client.bls([order.image] * 9, "the same number")
        case "recaptcha_v2":
            return client.recaptcha_v2(key, page)
        case "recaptcha_v2_invisible":
            return client.recaptcha_v2(key, page, invisible=True)
        case "recaptcha_v2_enterprise":
            return client.recaptcha_v2(key, page, enterprise=True)
        case "recaptcha_v3":
            return client.recaptcha_v3(key, page, action="login", min_score=0.3)
        case "recaptcha_v3_enterprise":
            return client.recaptcha_v3(key, page, action="login", enterprise=True)
        case "turnstile":
            return client.turnstile(key, page)
        case "cloudflare_challenge":
            return client.cloudflare_challenge(page, user_agent=order.agent, **through)
        case "geetest":
            return client.geetest(order.gt, order.challenge, page)
        case "captchafox":
            return client.captchafox(key, page, **through)
        case "friendly_captcha":
            return client.friendly_captcha(key, page, version="v2")
        case "lemin":
            return client.lemin("CROPPED_1", "lemin-cropped-captcha", page)
    raise driver.NotOffered(order)


# What must be handed on to the site with the token.
WITH_AGENT = ("recaptcha_v2_enterprise", "recaptcha_v3_enterprise", "cloudflare_challenge", "captchafox")


async def solve(order):
    words = {"api_key": order.key, "base_url": order.base}
    is_async = order.how == "async"
    client = await captchaai.AsyncCaptchaAI.create(**words) if is_async else captchaai.CaptchaAI(**words)
    if order.what == "threads":
        return await driver.settled(client.threads_info())
    result = await driver.settled(call(client, order))
    # A provider that binds its answers to no browser tells none; the member is there all the same.
    if order.what in WITH_AGENT and result.user_agent is None:
        raise ValueError("the answer came without its user agent")
    return result.solution, result.task_id


driver.run(solve, order)
