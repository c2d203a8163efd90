"""2captcha-python, the official client of 2captcha: requests or, async, httpx; classic, plain text, https only. Any body
with ERROR in it is an error to it, and any status but 200."""

import driver

order = driver.prepare()

import twocaptcha  # noqa: E402

driver.watch_requests()
driver.watch_httpx()


def call(client, order):
    page, key = order.page, order.site_key
    through = {"type": order.proxy_type, "uri": order.proxy}
    match order.what:
        case "image":
            return client.normal(order.image_path())
        case "image_text":
            return client.normal(order.image_text, numeric=1, minLen=4, maxLen=8, lang="en")
        case "text":
            return client.text(order.question, lang="en")
        case "grid":
            return client.grid(order.image_path(), hintText="traffic lights", rows=3, cols=3)
        case "coordinates":
            return client.coordinates(order.image_path(), hintText="the cat")
        case "rotate":
            return client.rotate(order.image_path())
        case "recaptcha_v2":
            return client.recaptcha(key, page)
        case "recaptcha_v2_enterprise":
            return client.recaptcha(key, page, enterprise=1)
        case "recaptcha_v2_proxy":
            return client.recaptcha(key, page, proxy=through, userAgent=order.agent)
        case "recaptcha_v3":
            return client.recaptcha(key, page, version="v3", action="login", score=0.3)
        case "hcaptcha":
            return client.hcaptcha(key, page)
        case "turnstile":
            return client.turnstile(key, page)
        case "geetest":
            return client.geetest(order.gt, order.challenge, page)
        case "geetest_v4":
            return client.geetest_v4(order.gt, page)
        case "funcaptcha":
            return client.funcaptcha(key, page, surl="https://client-api.example.com")
        case "friendly_captcha":
            return client.friendly_captcha(key, page)
        case "datadome":
            captcha = "https://geo.example.com/captcha/?initialCid=1"
            return client.datadome(captcha_url=captcha, pageurl=page, userAgent=order.agent, proxy=through)
    raise driver.NotOffered(order)


async def solve(order):
    kind = twocaptcha.AsyncTwoCaptcha if order.how == "async" else twocaptcha.TwoCaptcha
    more = {"extendedResponse": True} if order.how == "extended" else {}
    client = kind(order.key, server=order.host, pollingInterval=1, **more)
    if order.what == "balance":
        return await driver.settled(client.balance())
    result = await driver.settled(call(client, order))
    if order.report:
        reply = await driver.settled(client.report(result["captchaId"], order.report == "good"))
        if reply != "OK_REPORT_RECORDED":
            raise ValueError(f"the report was answered {reply}")
    return result["code"], result["captchaId"]


driver.run(solve, order)
